// `npm run bench -- overload`: measures reads at three times the capacity. The gateway, content-cache, Redis and
// PostgreSQL share one core; the load uses the other. Repeats this for a gateway with a free upstream, and for other
// gateways. Exits with 1 if a goal is missed.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../../deploy/local/ports.ts';
import { closeRecords } from '../../support/records.ts';
import { stack } from '../../support/stack.ts';
import { until } from '../../support/wait.ts';
import { startAuth } from '../gateway/auth.ts';
import { type Candidate, type CandidateContext, candidates } from '../gateway/candidates.ts';
import { installPeers, versionsOf } from '../gateway/install.ts';
import { stopAll } from '../gateway/processes.ts';
import { median } from '../percentiles.ts';
import {
  otherCore,
  pin,
  pinTestSystem,
  platformCore,
  stackVersions,
  startLoadGenerator,
  startTestSystem,
  type TestSystem,
} from '../test-system.ts';
import { conclude } from '../verdict.ts';
import { judge, type Step } from './goals.ts';
import { startProbe } from './probe.ts';

const paths = ['/api/content/pathway/1'];
const people = 500;
const seconds = Number(process.env['OVERLOAD_SECONDS'] ?? 12);
/** Loads with goals: multiples of the capacity, and the number of open connections. Three rounds in turn. */
const heaviest = Array.from({ length: 3 }, () => [[3, 2_000] as const, [3, 6_000] as const]).flat();
const loads = [[1, 2_000] as const, [2, 2_000] as const, ...heaviest];
const few = 64;
/** Pause after a load: longer than a recovery may take. */
const restMs = 6_000;

const load = startLoadGenerator();

async function closedLoop(gateway: string, forSeconds: number): Promise<number> {
  const often = { perSecond: 0, seconds: forSeconds, preopened: 0, connections: few };
  return (await load.send({ origins: [gateway], paths, ...often })).goodput;
}

/** Returns the replies per second if each connection waits for its replies: the median of three rounds. */
async function capacityOf(gateway: string): Promise<number> {
  const rounds: number[] = [];
  for (let round = 0; round < 3; round += 1) rounds.push(await closedLoop(gateway, 2));
  return median(rounds);
}

/** Sends the loads in turn. The speed of a machine changes, so each is compared with the capacity around it. */
async function measureLoads(
  gateway: string,
  list: readonly (typeof loads)[number][],
  watch?: () => ReturnType<typeof startProbe>,
) {
  await closedLoop(gateway, 10);
  const capacities = [await capacityOf(gateway)];
  const steps: Step[] = [];
  for (const [multiple, connections] of list) {
    const before = capacities.at(-1)!;
    const perSecond = Math.round(before * multiple);
    const probe = watch?.();
    const seen = await load.send({
      origins: [gateway],
      paths,
      perSecond,
      seconds,
      preopened: connections,
      connections,
    });
    await sleep(Math.max(0, seen.endedAt + restMs - Date.now()));
    const probed = await probe?.stop(seen.endedAt);
    const after = await capacityOf(gateway);
    capacities.push(after);
    steps.push({ multiple, connections, perSecond, capacity: (before + after) / 2, seen, probed });
  }
  return { capacities, steps };
}

async function measure(name: string, does: string, system: TestSystem, token: string) {
  pinTestSystem(system);
  const { capacities, steps } = await measureLoads(system.gateway, loads, () => startProbe(system, token));
  console.log(`${name}: ${capacities.map(Math.round).join(', ')}/s over ${few} connections`);
  return { name, does, capacities, steps, verdicts: judge(capacities, steps) };
}

/** Measures another gateway with the same work. nginx gets 80 % of its capacity as a limit for all callers together. */
async function measureOther({ name, does, start }: Candidate, context: CandidateContext) {
  async function open(limit?: number) {
    const port = await freePort();
    const children = await start(port, { ...context, ...(limit && { limit }) });
    for (const { pid } of children) pin(pid!, platformCore);
    const gateway = `http://127.0.0.1:${port}`;
    await until(`${name} answers`, async () => (await fetch(gateway)).status > 0);
    return { gateway, close: () => children.forEach((child) => child.kill('SIGKILL')) };
  }
  const free = await open();
  await closedLoop(free.gateway, 10);
  const limit = Math.round((await capacityOf(free.gateway)) * 0.8);
  free.close();
  const limited = await open(limit);
  const { steps } = await measureLoads(limited.gateway, heaviest);
  limited.close();
  return { name, does, limit, steps };
}

const folder = mkdtempSync(join(tmpdir(), 'bench-overload-'));
try {
  await installPeers();
  const { sign, url: stub, pid, publicKeyPem } = await startAuth();
  load.post(Array.from({ length: people }, (_, index) => sign(index + 1)));
  for (const each of [process.pid, load.pid, pid]) pin(each, otherCore);
  const probeToken = sign(people + 1);
  const scenes = [
    await measure(
      'the platform',
      'gateway, content-cache, Redis and PostgreSQL on one core',
      await startTestSystem(stub),
      probeToken,
    ),
    await measure(
      'the gateway',
      'gateway and Redis on one core, a stub service on the other',
      await startTestSystem(stub, { stub }),
      probeToken,
    ),
  ];
  const context = { upstream: stub, redis: stack().redis, publicKeyPem, folder };
  const others = [];
  for (const candidate of candidates)
    if (['fast-gateway', 'nginx, auth_request'].includes(candidate.name) && candidate.hasDuties)
      others.push(await measureOther(candidate, context));
  const settings = { paths, people, seconds, connections: few, rateLimitScale: 1000 };
  const verdicts = scenes.flatMap((scene) => scene.verdicts);
  const versions = { ...(await stackVersions()), ...versionsOf('fast-gateway') };
  conclude('overload', verdicts, { settings, scenes, others }, versions);
} finally {
  await closeRecords();
  await stopAll();
  rmSync(folder, { recursive: true, force: true });
}
