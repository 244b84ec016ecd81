// `npm run bench -- events`: how many events one content-cache clears a second, how long after an event its record is
// gone, and how long a call of clear-model takes, on real Kafka, Redis and PostgreSQL. Everything is on this machine, the
// load included: whose CPU it took is told.
import { stopAll } from '../gateway/processes.ts';
import { redisVersion } from '../redis-figures.ts';
import { writeResult } from '../../support/results.ts';
import { startStores } from '../stores.ts';
import { conclude } from '../verdict.ts';
import { measureBare, measureCalls, measureEvents, type Delay } from './delay.ts';
import { judge, type Measured } from './goals.ts';
import { prepare, type Cpu, type Ground, type UnmanagedKeys } from './ground.ts';
import { addOthers } from './records.ts';
import { measureThroughput } from './throughput.ts';

/** BENCH_SCALE=0.1: a tenth of it, to see whether it works. */
const scale = Number(process.env['BENCH_SCALE'] ?? 1);
/** So many events wait when the consumer starts. */
const waiting: Record<UnmanagedKeys, number> = { none: 200_000 * scale, sweep: 20_000 * scale };
/** Keys of other records. */
const others = 10_000;
const perSecond = 500;
const seconds = 20 * scale;
const warmUpSeconds = 4 * scale;

const cpuLine = (cpu: Cpu): string =>
  Object.entries(cpu)
    .map(([name, us]) => `${name} ${us.toFixed(0)}`)
    .join('  ');

const delayLine = (what: string, { times: { p50, p99, max }, cpu }: Delay): string =>
  `  ${what.padEnd(8)} p50 ${p50.toFixed(1)}  p99 ${p99.toFixed(1)}  max ${max.toFixed(1)} ms   CPU µs each: ${cpuLine(cpu)}`;

async function measure(ground: Ground, unmanagedKeys: UnmanagedKeys): Promise<Measured> {
  await ground.redis.admin.flushall();
  await addOthers(ground.redis.admin, others);
  // It makes the topic, and has its place in it.
  await ground.start(unmanagedKeys, true);
  console.log(`CACHE_UNMANAGED_KEYS=${unmanagedKeys}, beside ${others} other keys`);
  const throughput = await measureThroughput(ground, unmanagedKeys, waiting[unmanagedKeys]);
  console.log(
    `  waiting  ${throughput.events} events: ${throughput.perSecond.toFixed(0)} cleared a second   CPU µs each: ${cpuLine(throughput.cpu)}`,
  );
  const events = await measureEvents(ground, perSecond, seconds);
  console.log(delayLine('events', events));
  await measureCalls(ground, perSecond / 2, warmUpSeconds);
  const calls = await measureCalls(ground, perSecond, seconds);
  console.log(delayLine('calls', calls));
  await measureBare(ground, perSecond / 2, warmUpSeconds);
  const bare = await measureBare(ground, perSecond, seconds);
  console.log(delayLine('bare', bare));
  await ground.end();
  return { throughput, events, calls, bare };
}

const stores = await startStores({ withKafka: true });
try {
  const ground = await prepare(stores);
  const none = await measure(ground, 'none');
  const sweep = await measure(ground, 'sweep');
  const verdicts = judge(none);
  console.log('');
  conclude(verdicts);
  const versions = { ...stores.versions, redis: await redisVersion(ground.redis.admin) };
  writeResult(
    'bench',
    'events',
    { settings: { scale, others, perSecond, seconds }, verdicts, none, sweep },
    versions,
  );
  await ground.close();
} finally {
  await stopAll();
  await stores.stop();
}
