// `npm run bench -- overload`: what becomes of reads when three times as many come as can be answered. The gateway, the
// content-cache behind it, Redis and PostgreSQL are held on one core, and the load on the other. Then the same for a
// gateway behind which a read costs nothing. Exits with 1 when a goal is missed.
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuOf } from '../cpu.ts';
import { median } from '../percentiles.ts';
import { stopAll } from '../gateway/processes.ts';
import { closeRecords } from '../../support/records.ts';
import { writeResult } from '../../support/results.ts';
import { otherCore, pin, pinStand, stackVersions, startStand, startTokens, type Stand } from '../stand.ts';
import { judge, peakOf, type Step } from './goals.ts';
import { startLoad } from '../load/start.ts';
import { conclude } from '../verdict.ts';
import { startProbe } from './probe.ts';

const path = '/api/content/pathway/1';
const people = 500;
const seconds = Number(process.env['OVERLOAD_SECONDS'] ?? 20);
const multiples = [1, 2, 3];
/** Kept connections while the peak is looked for, and all that clients open when they are not answered at once. */
const [few, many] = [64, 2_000];
/** Longer than a recovery may take. */
const restMs = 6_000;

const load = startLoad();

const closedLoop = async ({ gateway: origin }: Stand, forSeconds: number): Promise<number> =>
  (await load.send({ origin, path, perSecond: 0, seconds: forSeconds, kept: 0, connections: few })).goodput;

/** Requests that are answered in a second when each connection waits for its replies: the median of three. */
async function capacityOf(stand: Stand): Promise<number> {
  const rounds: number[] = [];
  for (let round = 0; round < 3; round += 1) rounds.push(await closedLoop(stand, 3));
  return median(rounds);
}

async function step(stand: Stand, token: string, capacity: number, multiple: number): Promise<Step> {
  const { gateway: origin, pids } = stand;
  const perSecond = Math.round(capacity * multiple);
  const taken = () => Object.entries(pids).map(([name, pid]) => [name, cpuOf(pid)] as const);
  const before = Object.fromEntries(taken());
  const probe = startProbe(stand, token);
  const seen = await load.send({ origin, path, perSecond, seconds, kept: people, connections: many });
  const cpu = Object.fromEntries(taken().map(([name, us]) => [name, (us - before[name]!) / seen.due]));
  await sleep(Math.max(0, seen.endedAt + restMs - Date.now()));
  return { multiple, perSecond, seen, probed: await probe.stop(seen.endedAt), cpu };
}

const ms = (value: number | undefined) => (value === undefined ? '–' : value.toFixed(0)).padStart(6);

function print({ multiple, perSecond, seen, probed }: Step): void {
  const { good, refused, statuses, gaveUp, unsent, broken, late } = seen;
  console.log(
    `  ${multiple} × ${String(perSecond).padStart(6)}/s: ${seen.goodput.toFixed(0).padStart(6)}/s answered (${seen.goodputInTime.toFixed(0)} within 500 ms), p50 ${ms(good?.p50)} p99 ${ms(good?.p99)}; refused p50 ${ms(refused?.p50)} p99 ${ms(refused?.p99)} ms`,
  );
  console.log(
    `     ${JSON.stringify(statuses)}, gave up ${gaveUp}, unsent ${unsent}, broken ${broken}; health ${probed.health.max.toFixed(0)}, metrics ${probed.metrics.max.toFixed(0)} ms at most; well after ${probed.recovery.toFixed(0)} ms; load late by ${late.toFixed(0)} ms (p99)`,
  );
}

async function measure(name: string, does: string, stand: Stand, token: string) {
  pinStand(stand);
  await closedLoop(stand, 10);
  const capacity = await capacityOf(stand);
  console.log(`\n${name}: ${does}\n  ${capacity.toFixed(0)}/s over ${few} connections`);
  const steps: Step[] = [];
  for (const multiple of multiples) {
    steps.push(await step(stand, token, capacity, multiple));
    print(steps.at(-1)!);
  }
  const afterwards = await capacityOf(stand);
  console.log(`  ${afterwards.toFixed(0)}/s afterwards`);
  const verdicts = judge(capacity, steps, afterwards);
  conclude(verdicts);
  return { name, does, capacity, peak: peakOf(capacity, steps), afterwards, steps, verdicts };
}

try {
  const { sign, url: light } = await startTokens();
  const tokens = Array.from({ length: people }, (_, index) => sign(index + 1));
  load.use(tokens);
  for (const pid of [process.pid, load.pid]) pin(pid, otherCore);
  const own = sign(people + 1);
  const scenes = [
    await measure(
      'the platform',
      'gateway, content-cache, Redis and PostgreSQL on one core',
      await startStand(light),
      own,
    ),
    await measure(
      'the gateway',
      'gateway and Redis on one core, what answers behind it on the other',
      await startStand(light, light),
      own,
    ),
  ];
  writeResult(
    'bench',
    'overload',
    {
      settings: { path, people, seconds, connections: { few, kept: people, many }, rateLimitScale: 1000 },
      scenes,
    },
    await stackVersions(),
  );
} finally {
  await closeRecords();
  await stopAll();
}
