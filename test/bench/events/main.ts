// `npm run bench -- events`: measures how many events one content-cache clears per second, the delay from event to
// clear, and the duration of a clear-model call, on real Kafka, Redis and PostgreSQL. The load runs on the same
// machine; the results state whose CPU it used.
import { stopAll } from '../gateway/processes.ts';
import { redisVersion, scale } from '../figures.ts';
import { startStores } from '../stores.ts';
import { conclude } from '../verdict.ts';
import { measureBare, measureCalls, measureEvents } from './delay.ts';
import { judge, type Measured } from './goals.ts';
import { prepare, type EventsContext, type UnmanagedKeys } from './context.ts';
import { addOthers } from './records.ts';
import { measureThroughput } from './throughput.ts';

/** Number of events that wait when the consumer starts. */
const waiting: Record<UnmanagedKeys, number> = { none: 200_000 * scale, sweep: 20_000 * scale };
const others = 10_000;
const perSecond = 500;
const seconds = 20 * scale;
const warmUpSeconds = 24 * scale; // 12,000 calls: V8 optimises the code of a call after about 10,000

async function measure(context: EventsContext, unmanagedKeys: UnmanagedKeys): Promise<Measured> {
  await context.redis.admin.flushall();
  await addOthers(context.redis.admin, others);
  // Starts content-cache once, so that it creates the topic and commits an offset.
  await context.start(unmanagedKeys, true);
  console.log(`CACHE_UNMANAGED_KEYS=${unmanagedKeys}, beside ${others} other keys`);
  const throughput = await measureThroughput(context, unmanagedKeys, waiting[unmanagedKeys]);
  const events = await measureEvents(context, perSecond, seconds);
  await measureCalls(context, perSecond, warmUpSeconds);
  const calls = await measureCalls(context, perSecond, seconds);
  await measureBare(context, perSecond, warmUpSeconds);
  const bare = await measureBare(context, perSecond, seconds);
  await context.end();
  return { throughput, events, calls, bare };
}

const stores = await startStores({ withKafka: true });
try {
  const context = await prepare(stores);
  const none = await measure(context, 'none');
  const sweep = await measure(context, 'sweep');
  const verdicts = judge(none);
  const versions = { ...stores.versions, redis: await redisVersion(context.redis.admin) };
  const settings = { scale, others, perSecond, seconds };
  conclude('events', verdicts, { settings, verdicts, none, sweep }, versions);
  await context.close();
} finally {
  await stopAll();
  await stores.stop();
}
