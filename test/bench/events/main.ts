// `npm run bench -- events`: measures how many events one content-cache clears per second, the delay from event to
// clear, and the duration of a clear-model call, on real Kafka, Redis and PostgreSQL. The load runs on the same
// machine; the results state whose CPU it used.
import { stopAll } from '../gateway/processes.ts';
import { redisVersion } from '../redis-figures.ts';
import { startStores } from '../stores.ts';
import { conclude } from '../verdict.ts';
import { measureBare, measureCalls, measureEvents } from './delay.ts';
import { judge, type Measured } from './goals.ts';
import { prepare, type Ground, type UnmanagedKeys } from './ground.ts';
import { addOthers } from './records.ts';
import { measureThroughput } from './throughput.ts';

/** Scales the workload; BENCH_SCALE=0.1 is a trial run. */
const scale = Number(process.env['BENCH_SCALE'] ?? 1);
/** Number of events that wait when the consumer starts. */
const waiting: Record<UnmanagedKeys, number> = { none: 200_000 * scale, sweep: 20_000 * scale };
/** Keys of other records. */
const others = 10_000;
const perSecond = 500;
const seconds = 20 * scale;
const warmUpSeconds = 4 * scale;

async function measure(ground: Ground, unmanagedKeys: UnmanagedKeys): Promise<Measured> {
  await ground.redis.admin.flushall();
  await addOthers(ground.redis.admin, others);
  // It makes the topic, and has its place in it.
  await ground.start(unmanagedKeys, true);
  console.log(`CACHE_UNMANAGED_KEYS=${unmanagedKeys}, beside ${others} other keys`);
  const throughput = await measureThroughput(ground, unmanagedKeys, waiting[unmanagedKeys]);
  const events = await measureEvents(ground, perSecond, seconds);
  await measureCalls(ground, perSecond / 2, warmUpSeconds);
  const calls = await measureCalls(ground, perSecond, seconds);
  await measureBare(ground, perSecond / 2, warmUpSeconds);
  const bare = await measureBare(ground, perSecond, seconds);
  await ground.end();
  return { throughput, events, calls, bare };
}

const stores = await startStores({ withKafka: true });
try {
  const ground = await prepare(stores);
  const none = await measure(ground, 'none');
  const sweep = await measure(ground, 'sweep');
  const verdicts = judge(none);
  const versions = { ...stores.versions, redis: await redisVersion(ground.redis.admin) };
  const settings = { scale, others, perSecond, seconds };
  conclude('events', verdicts, { settings, verdicts, none, sweep }, versions);
  await ground.close();
} finally {
  await stopAll();
  await stores.stop();
}
