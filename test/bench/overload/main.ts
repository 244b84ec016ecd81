// `npm run bench -- overload`: measures reads at three times the capacity. The gateway, content-cache, Redis and
// PostgreSQL share one core; the load uses the other. Repeats this for a gateway with a free upstream. Exits with 1 if
// a goal is missed.
import { setTimeout as sleep } from 'node:timers/promises';
import { closeRecords } from '../../support/records.ts';
import { startAuth } from '../gateway/auth.ts';
import { stopAll } from '../gateway/processes.ts';
import { median } from '../percentiles.ts';
import {
  otherCore,
  pin,
  pinTestSystem,
  stackVersions,
  startPeople,
  startTestSystem,
  type TestSystem,
} from '../test-system.ts';
import { conclude } from '../verdict.ts';
import { judge, peakOf, type Step } from './goals.ts';
import { startProbe } from './probe.ts';

const paths = ['/api/content/pathway/1'];
const people = 500;
const seconds = Number(process.env['OVERLOAD_SECONDS'] ?? 20);
/** The loads: multiples of the capacity, and the number of open connections. */
const loads = [
  [1, 2_000],
  [2, 2_000],
  [3, 2_000],
  [3, 6_000],
] as const;
const few = 64;
/** Pause after a load: longer than a recovery may take. */
const restMs = 6_000;

const load = startPeople();

async function closedLoop({ gateway }: TestSystem, forSeconds: number): Promise<number> {
  const often = { perSecond: 0, seconds: forSeconds, kept: 0, connections: few };
  return (await load.send({ origins: [gateway], paths, ...often })).goodput;
}

/** Returns the replies per second if each connection waits for its replies: the median of three rounds. */
async function capacityOf(stand: TestSystem): Promise<number> {
  const rounds: number[] = [];
  for (let round = 0; round < 3; round += 1) rounds.push(await closedLoop(stand, 3));
  return median(rounds);
}

async function step(
  stand: TestSystem,
  token: string,
  capacity: number,
  [multiple, connections]: (typeof loads)[number],
): Promise<Step> {
  const perSecond = Math.round(capacity * multiple);
  const probe = startProbe(stand, token);
  const job = { origins: [stand.gateway], paths, perSecond, seconds, kept: connections, connections };
  const seen = await load.send(job);
  await sleep(Math.max(0, seen.endedAt + restMs - Date.now()));
  return { multiple, connections, perSecond, seen, probed: await probe.stop(seen.endedAt) };
}

async function measure(name: string, does: string, stand: TestSystem, token: string) {
  pinTestSystem(stand);
  await closedLoop(stand, 10);
  const capacity = await capacityOf(stand);
  console.log(`${name}: ${capacity.toFixed(0)}/s over ${few} connections`);
  const steps: Step[] = [];
  for (const each of loads) steps.push(await step(stand, token, capacity, each));
  const afterwards = await capacityOf(stand);
  const verdicts = judge(capacity, steps, afterwards);
  return { name, does, capacity, peak: peakOf(capacity, steps), afterwards, steps, verdicts };
}

try {
  const { sign, url: light, pid } = await startAuth();
  load.post(Array.from({ length: people }, (_, index) => sign(index + 1)));
  for (const each of [process.pid, load.pid, pid]) pin(each, otherCore);
  const own = sign(people + 1);
  const scenes = [
    await measure(
      'the platform',
      'gateway, content-cache, Redis and PostgreSQL on one core',
      await startTestSystem(light),
      own,
    ),
    await measure(
      'the gateway',
      'gateway and Redis on one core, a stub service on the other',
      await startTestSystem(light, { light }),
      own,
    ),
  ];
  const settings = { paths, people, seconds, connections: few, rateLimitScale: 1000 };
  const verdicts = scenes.flatMap((scene) => scene.verdicts);
  conclude('overload', verdicts, { settings, scenes }, await stackVersions());
} finally {
  await closeRecords();
  await stopAll();
}
