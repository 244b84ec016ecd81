// The system under test of load benchmarks: a separate gateway with a real or stub content-cache, on the running
// stack's stores, with its own tokens. All of it can run on one core.
import { spawnSync } from 'node:child_process';
import { internalPortOffset } from '@content-platform/contract';
import { withRedis } from '../support/connections.ts';
import { freeRow } from '../support/ports.ts';
import { descendantsOf } from '../support/processes.ts';
import { database } from '../support/records.ts';
import { pidOf, stack } from '../support/stack.ts';
import { until } from '../support/wait.ts';
import { cpuOf, redisVersion } from './figures.ts';
import { startLoad, type Load } from './gateway/processes.ts';
import type { Job, Seen } from './load/job.ts';
import { isReady, startContentCache, startGateway } from './own-services.ts';

/** The platform runs on this core, everything else on the other: a load that competes for CPU measures itself. */
export const [platformCore, otherCore] = [0, 1];

export function pin(pid: number, core: number): void {
  for (const each of [pid, ...descendantsOf(pid)]) {
    const { status } = spawnSync('taskset', ['-acp', String(core), String(each)]);
    if (status !== 0) throw new Error(`taskset could not pin process ${each} to core ${core}`);
  }
}

/** Starts a gateway, and a content-cache behind it unless `stub`, the URL of a stub service, takes its place. */
export async function startTestSystem(auth: string, { stub }: { stub?: string } = {}) {
  const [port, cachePort] = [await freeRow(1), await freeRow(1)];
  const { postgres, logs, redis } = stack();
  const contentCache = stub ?? `http://127.0.0.1:${cachePort}`;
  const pids: Record<string, number> = {
    gateway: startGateway(port, { upstream: auth, redis, contentCache }).pid!,
  };
  if (stub === undefined) {
    const addresses = { auth, postgres, logs, redis, kafka: '' };
    pids['content-cache'] = startContentCache(cachePort, addresses).pid!;
    await until('content-cache is ready', () => isReady(cachePort));
  }
  await until('the gateway is ready', () => isReady(port));
  return {
    gateway: `http://127.0.0.1:${port}`,
    internal: `http://127.0.0.1:${port + internalPortOffset}`,
    pids,
  };
}
export type TestSystem = Awaited<ReturnType<typeof startTestSystem>>;

/** Returns the versions that the stack's stores report. Leaves a connection open for `closeRecords`. */
export async function stackVersions(): Promise<Record<string, string>> {
  const { rows } = await database().query<{ server_version: string }>('SHOW server_version');
  return {
    postgres: rows[0]!.server_version.split(' ')[0]!,
    redis: await withRedis(redisVersion),
  };
}

/** Pins the system under test and its stores to one core, and the rest of the stack to the other. */
export function pinTestSystem({ pids }: TestSystem): void {
  for (const name of [...Object.keys(stack().services), 'kafka']) pin(pidOf(name), otherCore);
  for (const pid of [...Object.values(pids), pidOf('redis'), pidOf('postgres')]) pin(pid, platformCore);
}

/** Returns each process's CPU per counted item in µs, and the result of `work`. */
export async function cpuWhile<Result>(
  pids: Record<string, number>,
  work: () => Promise<Result>,
  count: (result: Result) => number,
): Promise<{ result: Result; cpu: Record<string, number> }> {
  const taken = () => Object.entries(pids).map(([name, pid]) => [name, cpuOf(pid)] as const);
  const before = Object.fromEntries(taken());
  const result = await work();
  const each = taken().map(([name, us]) => [name, (us - before[name]!) / count(result)]);
  return { result, cpu: Object.fromEntries(each) as Record<string, number> };
}

export const startLoadGenerator = () => startLoad<Job, Seen>('test/bench/load/main.ts');

/** Sends a load to a gateway. `cpu` is that of one request in each process, in µs. @throws Error without a reply 200 */
export async function measure(load: Load<Job, Seen>, job: Job, pids: Record<string, number>) {
  const goodOf = ({ statuses }: Seen) => statuses['200'] ?? 0;
  const { result: seen, cpu } = await cpuWhile(pids, () => load.send(job), goodOf);
  if (!seen.good) throw new Error(`${job.paths[0]}: ${JSON.stringify(seen.statuses)}`);
  // Failed: replies with another status than 200, and requests without a reply.
  return { cpu, perSecond: seen.goodput, times: seen.good, failed: seen.due - goodOf(seen) };
}
export type Round = Awaited<ReturnType<typeof measure>>;
