// `npm run bench -- cache`: compares hits, a storm of misses, a race and clears of content-cache with its alternatives.
// All are services with the same contract on the same PostgreSQL and Redis, behind identical gateways. Hits and storms
// are measured in alternating rounds. Logs are discarded.
import { freeRow } from '../../support/ports.ts';
import { startRedis } from '../../support/redis-server.ts';
import { until } from '../../support/wait.ts';
import { installPeers, versionsOf } from '../gateway/install.ts';
import { startAuth } from '../gateway/auth.ts';
import { connections, type Job, type Seen } from '../gateway/job.ts';
import { startHelper, startLoad, stopAll } from '../gateway/processes.ts';
import { inRotatingOrder } from '../rotating-order.ts';
import { isReady, startGateway } from '../own-services.ts';
import { redisVersion, scale } from '../figures.ts';
import { startStores } from '../stores.ts';
import { conclude } from '../verdict.ts';
import { caches, waysToClear, type CandidateContext, type Candidate, type WayToClear } from './candidates.ts';
import { measureIdleCpu, fill, measureClears, measureTogether, type Together } from './clears.ts';
import { judge, type CacheResult, type ClearResult } from './goals.ts';
import { connectTo, measureHits, race, readers, storm, type Service } from './reads.ts';
import { openRecords } from './records.ts';

const some = (count: number): number => Math.max(1, Math.round(count * scale));
const rounds = Math.max(2, some(5));
const warmUp = some(20_000);
const requests = some(20_000); // `cpuOf` has ticks of 10 ms: 0.5 µs of a request
const hitRecords = 1_000;
const storms = Math.max(1, some(3));
const raceSeconds = some(6);
const sizes = [10_000, 100_000, 1_000_000];
/** Number of timed sequential clears for each number of keys. */
const clearCounts = { search: [100, 30, 6].map(some), known: [1_000, 1_000, 1_000].map(some) };
/** Query times in s: a busy database for the storm, varying times for the race. */
const slowness = { storm: { least: 0.05, most: 0.05 }, race: { least: 0, most: 0.01 } };

await installPeers();
const { url: auth, headers, publicKeyPem } = await startAuth('cache:clear');
const stores = await startStores({ withKafka: false });
const [redis, limits, large] = await Promise.all([
  startRedis(), // the cache of every candidate
  startRedis(), // the rate limits of the gateways
  startRedis({ 'enable-debug-command': 'local' }), // for the clears: up to a million keys
]);
const originOf = (port: number): string => `http://127.0.0.1:${port}`;
const { postgres, logs } = stores;
const context: CandidateContext = { auth, postgres, logs, redis: redis.url, publicKeyPem };
const records = openRecords(postgres);

async function start(candidate: Candidate, on = context) {
  const port = await freeRow(1);
  const child = candidate.start(port, on);
  const service = connectTo(originOf(port), headers);
  const untilReady = () => until(`${candidate.name} is ready`, () => isReady(port));
  await untilReady();
  return { child, service, untilReady };
}
type Started = Awaited<ReturnType<typeof start>>;

async function bringUp(candidate: Candidate) {
  const processes: [Started, Started] = [await start(candidate), await start(candidate)];
  const port = await freeRow(1);
  const contentCache = processes[0].service.origin;
  const gateway = startGateway(port, { upstream: auth, redis: limits.url, contentCache });
  const { name, does } = candidate;
  const result: CacheResult = {
    name,
    does,
    rounds: [],
    storms: { one: [], two: [] },
    race: { clears: 0, reads: 0, stale: 0 },
  };
  return { processes, gateway, origin: originOf(port), result };
}
type Running = Awaited<ReturnType<typeof bringUp>>;

async function compareHits(running: readonly Running[]): Promise<void> {
  const load = startLoad<Job, Seen>('test/bench/gateway/load.ts');
  // More records than connections, because readers of one key may share a reply.
  const ids = await records.make(hitRecords);
  const paths = ids.map((id) => `/api/content/webform/${id}`);
  for (const { origin } of running) {
    await until('the gateway forwards', async () => (await fetch(origin + paths[0]!, { headers })).ok);
    await load.send({ origin, paths, headers, requests: warmUp });
  }
  await inRotatingOrder(running, rounds, async ({ origin, gateway, processes: [{ child }], result }) => {
    const of = { gateway, service: child, admin: redis.admin };
    result.rounds.push(await measureHits(load, { origin, paths, headers, requests }, of));
  });
}

async function compareStorms(running: readonly Running[]): Promise<void> {
  await records.slow(slowness.storm);
  await inRotatingOrder(running, storms, async ({ processes, result }) => {
    const [first, second] = processes.map(({ service }) => service) as [Service, Service];
    result.storms.one.push(await storm([first], records));
    result.storms.two.push(await storm([first, second], records));
  });
}

async function compareRaces(running: readonly Running[]): Promise<void> {
  await records.slow(slowness.race);
  for (const { processes, result } of running) {
    const services = processes.map(({ service }) => service);
    result.race = await race(services, records, raceSeconds);
  }
}

async function compareClears(): Promise<{ clears: ClearResult[]; together: Together }> {
  const prober = startHelper('test/bench/cache/prober.ts', { REDIS_URL: large.url });
  const on = { redis: large, records, prober, idleCpu: 0 };
  const results: (ClearResult & { way: WayToClear; started: Started })[] = [];
  for (const way of waysToClear) {
    const { name, does } = way;
    results.push({ name, does, sizes: [], way, started: await start(way, { ...context, redis: large.url }) });
  }
  for (const [index, keys] of sizes.entries()) {
    await fill(large, keys);
    for (const { started } of results) await started.untilReady();
    on.idleCpu = await measureIdleCpu(large);
    for (const { way, started, sizes: measured } of results) {
      // content-cache disconnects from a Redis that was blocked for 250 ms, by filling or KEYS, and reconnects within a second.
      await started.untilReady();
      const count = clearCounts[way.isSearch ? 'search' : 'known'][index]!;
      measured.push(await measureClears(started.service, way.isSearch, on, keys, count));
    }
  }
  const { started } = results.find(({ name }) => name === 'ours, sweep')!;
  await started.untilReady();
  const together = await measureTogether(started.service, on, sizes.at(-1)!);
  return { clears: results.map(({ name, does, sizes }) => ({ name, does, sizes })), together };
}

try {
  const running: Running[] = [];
  for (const candidate of caches) running.push(await bringUp(candidate));
  const results = running.map(({ result }) => result);
  console.log(`Hits: ${rounds} rounds of ${requests} requests of 1 KB, ${connections} connections`);
  await compareHits(running);
  console.log('Clears');
  const { clears, together } = await compareClears();
  console.log('Storms and races'); // last, because records.slow() delays every later read of the database
  await compareStorms(running);
  await compareRaces(running);

  const verdicts = judge(results, clears, together);
  const settings = { scale, connections, requests, readers, raceSeconds, slowness };
  const versions = {
    ...stores.versions,
    redis: await redisVersion(redis.admin),
    ...versionsOf('bentocache', 'cache-manager', '@keyv/redis', 'ioredis'),
  };
  conclude('cache', verdicts, { settings, verdicts, caches: results, clears, together }, versions);
} finally {
  await stopAll();
  await Promise.all([redis.stop(), limits.stop(), large.stop(), records.close()]);
  await stores.stop();
}
process.exit();
