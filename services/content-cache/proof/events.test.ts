import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { startCache } from '../cache/testing/caches.ts';
import { createRandom } from '../cache/testing/random.ts';
import { createFlood, digestOf, eventAt, HOT, readLog, type Announced } from '../testing/event-flood.ts';
import { createTestKafka, type TestKafka } from '../testing/kafka.ts';
import { startKilledService } from '../testing/killed-service.ts';
import { startKafkaServer, type KafkaServer } from '../../../test/support/kafka-server.ts';
import { proofSize } from '../../../test/support/proof-size.ts';
import { startRedis, type RedisServer } from '../../../test/support/redis-server.ts';
import { writeResult } from '../../../test/support/results.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/support/test-database.ts';
import { until } from '../../../test/support/wait.ts';

/** One event in a hundred is unprocessable. PROOF_SEED repeats the same events. */
const EVENTS = Number(process.env['EVENTS'] ?? proofSize(100_000, 2_000));
const seed = Number(process.env['PROOF_SEED'] ?? Math.floor(Math.random() * 1e9));
/** of Redis and of the broker, each */
const LEAST_RESTARTS = 2;
const restartEveryMs = proofSize(15_000, 8_000);
const settings = {
  events: EVENTS,
  /** slow enough for the restarts */
  perSecond: Math.min(333, Math.ceil((1_000 * EVENTS) / (2 * LEAST_RESTARTS * restartEveryMs))),
  consumers: 2,
  killEveryMs: 5_000,
  restartEveryMs,
  /** Shorter than the time between two kills, or the group would wait for dead members for ever. */
  sessionTimeoutMs: 3_000,
};
const DRAIN_MS = 300_000 + EVENTS * 5;
const REPORT_MS = 30_000;
const LEAST_KILLS = 5;

let database: TestDatabase;
let pool: pg.Pool;
let redis: RedisServer;
let server: KafkaServer;
let kafka: TestKafka;
const closing: (() => unknown)[] = [];
beforeAll(async () => {
  // One after the other, so that afterAll stops every started store.
  database = await createTestDatabase();
  // Redis logs before it answers, so a kill neither undoes nor adds a clear.
  redis = await startRedis({ appendonly: 'yes', appendfsync: 'no' });
  server = await startKafkaServer();
  pool = new pg.Pool({ connectionString: database.url, max: 4 });
  kafka = await createTestKafka(server.brokers);
  await kafka.makeTopic();
}, 300_000);
afterAll(async () => {
  for (const close of closing.toReversed()) await close();
  await kafka?.close();
  await Promise.all([redis?.stop(), server?.stop(), pool?.end()]);
  await database?.drop();
});

async function sql<Row extends pg.QueryResultRow>(text: string, ...values: unknown[]): Promise<Row[]> {
  return (await pool.query<Row>(text, values)).rows;
}
const keyOf = ({ model, id }: { model: string; id: number }) => `${model}:${id}`;

/** Puts version 1 of every record into the database and the cache. */
async function warm(cache: Cache): Promise<void> {
  const events = Array.from({ length: EVENTS }, (_, n) => eventAt(n, seed));
  const all = events.flatMap((event) => ('model' in event ? [event] : []));
  const records = [...new Map(all.map((record) => [keyOf(record), record])).values()];
  await sql(
    `INSERT INTO content.record SELECT model, id, 'Old', '{}' FROM unnest($1::text[], $2::bigint[]) AS r (model, id)`,
    records.map(({ model }) => model),
    records.map(({ id }) => id),
  );
  const old = { version: 1, payload: '{"version":1}' };
  for (let first = 0; first < records.length; first += 200) {
    const some = records.slice(first, first + 200);
    await Promise.all(some.map(({ model, id }) => cache.read(model, id, 'full', async () => old)));
  }
  const cached = new Set<string | null>();
  for (let first = 0; first < records.length; first += 1_000) {
    const some = records.slice(first, first + 1_000);
    const versions = await Promise.all(some.map((one) => redis.admin.hget(keyOf(one), 'full:version')));
    for (const version of versions) cached.add(version);
  }
  expect(cached).toEqual(new Set(['1']));
}
type Cache = Awaited<ReturnType<typeof startCache>>;

/** Starts the service's processes. killOne() kills and replaces one of them. */
function startConsumers() {
  const counts = { kills: 0, spared: 0, joins: 0, clears: 0, clearedAgain: 0, losses: [] as string[] };
  const places = new Set<unknown>();
  function onLogLine({ message, source, requested_by: place }: Record<string, unknown>): void {
    if (message === 'joined the consumer group') counts.joins += 1;
    if (message === 'cleared' && source === 'kafka') {
      counts[places.has(place) ? 'clearedAgain' : 'clears'] += 1;
      places.add(place);
    }
    if (/may have been lost|was not announced/.test(String(message))) counts.losses.push(String(message));
  }
  const { brokers, topic, group } = kafka;
  const options = {
    databaseUrl: database.url,
    redisUrl: redis.url,
    kafka: { brokers, topic, group },
    sessionTimeoutMs: settings.sessionTimeoutMs,
    // Only events may clear a record.
    changes: { intervalMs: 2 ** 31 - 1, settleMs: Infinity },
  };
  const services = Array.from({ length: settings.consumers }, () => startKilledService(options, onLogLine));
  closing.push(() => Promise.all(services.map((service) => service.stop())));
  return {
    counts,
    haveJoined: () => services.every(({ hasJoined }) => hasJoined()),
    /**
     * Kills the process that runs longest. Spares processes that have not joined yet, and all of them if nothing was
     * committed since the last kill: a slow machine would only start processes.
     */
    async killOne(isStuck: boolean): Promise<void> {
      const joined = services.filter(({ hasJoined }) => hasJoined());
      const [longest] = joined.toSorted((a, b) => a.startedAt() - b.startedAt());
      if (!longest || isStuck) {
        counts.spared += 1;
        return;
      }
      await longest.killAndReplace();
      counts.kills += 1;
    },
  };
}

/** Kills and restarts Redis and the broker in turn. */
function createRestarts() {
  const counts = { redis: 0, kafka: 0 };
  const restart = async (name: keyof typeof counts, one: Pick<RedisServer, 'kill' | 'restart'>) => {
    await one.kill();
    await sleep(500 + random() * 1_500);
    await one.restart();
    counts[name] += 1;
  };
  let turn = 0;
  const random = createRandom(seed);
  return {
    counts,
    /** the smaller of the two counts */
    least: () => Math.min(counts.redis, counts.kafka),
    next: () => ((turn += 1) % 2 === 1 ? restart('redis', redis) : restart('kafka', server)),
  };
}

/** Repeats `work` with pauses of `ms` until stop(). */
function every(ms: number, work: () => Promise<unknown>) {
  const stopping = new AbortController();
  const running = (async () => {
    while (!stopping.signal.aborted) {
      await sleep(ms, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (!stopping.signal.aborted) await work();
    }
  })();
  running.catch(() => undefined);
  async function stop(): Promise<void> {
    stopping.abort();
    await running;
  }
  closing.push(() => stop().catch(() => undefined));
  return { stop };
}

/** Checks during the flood that every committed event is cleared. */
function createWatch(announced: Announced[][], cache: Cache) {
  let committedNow = 0;
  let committedThen = 0;
  let waiting = 0;
  const seen = { recordsGone: 0, hotReads: 0, hotHits: 0, wrong: [] as string[] };
  const next = announced.map(() => 0);
  const floors = new Map<number, number>();
  let due: string[] = [];
  return {
    seen,
    /** Whether events wait and none was committed since the last call that returned false. */
    isStuck(): boolean {
      if (waiting > 0 && committedNow <= committedThen) return true;
      committedThen = committedNow;
      return false;
    },
    /** Separate records have no readers: once their event is committed, they must be gone from Redis. */
    async check(): Promise<void> {
      // If the broker is unreachable, the next call sees its commits.
      const offsets = await kafka.offsets().catch(() => []);
      committedNow = offsets.reduce((sum, { committed }) => sum + committed, 0);
      waiting = offsets.reduce((sum, { committed, high }) => sum + high - committed, 0);
      for (const { partition, committed } of offsets) {
        const events = announced[partition]!;
        for (; (events[next[partition]!]?.offset ?? Infinity) < committed; next[partition]! += 1) {
          const event = events[next[partition]!]!;
          if (event.isHot) floors.set(event.id, Math.max(floors.get(event.id) ?? 0, event.version));
          else due.push(keyOf(event));
        }
      }
      const checked = due;
      if (checked.length === 0) return;
      // If Redis is unreachable, the next call checks these records.
      const left = await redis.admin.exists(checked).catch(() => undefined);
      if (left === undefined) return;
      due = due.slice(checked.length);
      seen.recordsGone += checked.length;
      if (left > 0) seen.wrong.push(`${left} of ${checked.length} are still there: ${checked[0]} …`);
    },
    async readHot(): Promise<void> {
      const id = 1 + Math.floor(Math.random() * HOT);
      const floor = floors.get(id) ?? 1;
      const { outcome, record } = await cache.read('condition', id, 'full', async () => {
        const text = `SELECT version FROM content.record WHERE model = 'condition' AND id = $1`;
        const [row] = await sql<{ version: string }>(text, id);
        return row ? { version: Number(row.version), payload: JSON.stringify(row) } : null;
      });
      seen.hotReads += 1;
      if (outcome === 'hit') seen.hotHits += 1;
      const version = record?.version ?? 0;
      if (version < floor) seen.wrong.push(`condition:${id}: ${version} (${outcome}), cleared at ${floor}`);
    },
  };
}

/** Checks that each unprocessable event is one failed job, and that there are no other jobs. */
async function compareFailedJobs() {
  const log = await readLog(kafka);
  const bad = log.filter(({ n }) => n % 100 === 99);
  const expected = bad.map(({ n, partition, offset, digest }) => {
    const event = eventAt(n, seed);
    return `${partition}/${offset} ${'class' in event && event.class} ${digest}`;
  });
  const rows = await sql<{ class: string; partition: number; offset: string; value: Buffer | null }>(
    'SELECT class, "partition", "offset", value FROM content.failed_job',
  );
  const stored = rows.map(
    ({ class: name, partition, offset, value }) => `${partition}/${offset} ${name} ${digestOf(value)}`,
  );
  expect(stored.toSorted()).toEqual(expected.toSorted());
  // Every acknowledged event is in the topic, some of them twice.
  const numbers = new Set(log.map(({ n }) => n));
  expect(numbers.size).toBe(EVENTS);
  return {
    messages: log.length,
    producedTwice: log.length - EVENTS,
    poison: bad.length,
    failedJobs: rows.length,
  };
}

/** Returns the records in Redis, and those that are older than their last event. */
async function leftInRedis(announced: Announced[][]): Promise<{ keys: number; old: string[] }> {
  const last = new Map<string, number>();
  for (const event of announced.flat())
    last.set(keyOf(event), Math.max(last.get(keyOf(event)) ?? 0, event.version));
  const keys = await redis.admin.keys('*:*');
  const hashes = await Promise.all(keys.map(async (key) => ({ key, hash: await redis.admin.hgetall(key) })));
  const old = hashes.filter(({ key, hash }) =>
    ['full', 'summary'].some((view) => Number(hash[`${view}:version`] ?? Infinity) < last.get(key)!),
  );
  return { keys: keys.length, old: old.map(({ key, hash }) => `${key} ${JSON.stringify(hash)}`) };
}

test(
  `${EVENTS} events, one in a hundred poison, while consumers, Redis and the broker are killed: none is lost, none counted twice (PROOF_SEED=${seed})`,
  async () => {
    const consumers = startConsumers();
    await until('they consume', consumers.haveJoined);
    await kafka.consumed();
    await sql('UPDATE content.change_epoch SET cleared = true');
    const cache = await startCache(redis.url, { ttlMs: 86_400_000 });
    closing.push(cache.close);
    await warm(cache);
    const loss = consumers.counts.losses.splice(0);
    // A new group starts with a clear of everything.
    expect(new Set(loss)).toEqual(new Set(['events may have been lost; the whole cache was cleared']));

    const began = performance.now();
    const secondsSince = () => Math.round((performance.now() - began) / 1_000);
    const flood = createFlood(sql, kafka, EVENTS, seed);
    const watch = createWatch(flood.announced, cache);
    const restarts = createRestarts();
    const lag = async (): Promise<number> =>
      (await kafka.offsets()).reduce((sum, { committed, high }) => sum + high - committed, 0);
    const report = async () =>
      void process.stderr.write(
        `events: ${secondsSince()} s, ${flood.sent} sent, ${await lag().catch(() => 'unknown')} wait, ${JSON.stringify({ ...consumers.counts, ...restarts.counts, ...watch.seen })}\n`,
      );
    const killing = every(settings.killEveryMs, () => consumers.killOne(watch.isStuck()));
    const restarting = every(settings.restartEveryMs, restarts.next);
    const meanwhile = [every(REPORT_MS, report), every(500, watch.check), every(5, watch.readHot)];
    await flood.run(settings.perSecond);
    const secondsToSend = secondsSince();
    await until('both were restarted', () => restarts.least() >= LEAST_RESTARTS, DRAIN_MS);
    await restarting.stop();
    await until('every event is committed', async () => (await lag()) === 0, DRAIN_MS);
    const secondsToCommit = secondsSince();
    await killing.stop();
    await Promise.all(meanwhile.map((one) => one.stop()));
    await watch.check();

    const log = await compareFailedJobs();
    const left = await leftInRedis(flood.announced);
    const [postgres] = await sql<{ server_version: string }>('SHOW server_version');
    const info = await redis.admin.info('server');
    const found = {
      about:
        'recordsGone: records with a single event, checked as soon as the event was committed; clearedAgain: events that were cleared again after a kill; producedTwice: messages that the broker has twice as its answer was lost',
      seed,
      settings,
      secondsToSend,
      secondsToCommit,
      sent: flood.sent,
      sentAgain: flood.sentAgain,
      log,
      // More than killEveryMs if a slow machine spared consumers.
      secondsPerKill: Math.round((10 * secondsToCommit) / consumers.counts.kills) / 10,
      consumers: consumers.counts,
      restarts: restarts.counts,
      during: watch.seen,
      atTheEnd: left,
    };
    writeResult('faults', 'events', found, {
      redis: /redis_version:(\S+)/.exec(info)![1]!,
      postgres: postgres!.server_version,
      kafka: server.version,
    });
    await report();

    expect(watch.seen.wrong).toEqual([]);
    expect(left.old).toEqual([]);
    expect(consumers.counts.losses).toEqual([]);
    const alone = flood.announced.flat().filter(({ isHot }) => !isHot);
    expect(watch.seen.recordsGone).toBe(alone.length);
    expect(consumers.counts.kills).toBeGreaterThanOrEqual(LEAST_KILLS);
    expect(watch.seen.hotHits).toBeGreaterThan(0);
  },
  2 * DRAIN_MS + EVENTS * 10,
);
