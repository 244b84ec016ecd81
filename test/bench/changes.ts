// `npm run bench -- changes`: measures how long a change without an announcement stays invisible, on real PostgreSQL,
// Redis and Kafka: single changes, and one large change beside other reads.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { Agent, request } from 'undici';
import { freeRow } from '../support/ports.ts';
import { startRedis } from '../support/redis-server.ts';
import { until } from '../support/wait.ts';
import { startAuth } from './gateway/auth.ts';
import { stopAll } from './gateway/processes.ts';
import { openLoop, type Outcome } from './open-loop.ts';
import { isReady, startContentCache } from './own-services.ts';
import { percentile, timesOf } from './percentiles.ts';
import { redisVersion, scale } from './figures.ts';
import { startStores } from './stores.ts';
import { conclude } from './verdict.ts';

const [perSecond, singles, rows, readsPerSecond] = [200, 10_000 * scale, 100_000 * scale, 100];
/** Of the rows of the large change, those that are in the cache. */
const cachedRows = rows / 10;
/** p99 of single changes in ms; the large change in ms; p95 of other reads as a multiple. */
const goals = { single: 2_000, bulk: 30_000, reads: 2 };

const stores = await startStores({ withKafka: true });
try {
  const [auth, redis, port] = [await startAuth('content:read'), await startRedis(), await freeRow(1)];
  const { postgres, logs, kafka } = stores;
  startContentCache(port, { auth: auth.url, postgres, logs, redis: redis.url, kafka });
  await until('content-cache is ready', () => isReady(port));
  const pool = new pg.Pool({ connectionString: postgres, max: 16 });
  const agent = new Agent({ connections: 64, pipelining: 1 });

  async function read(model: string, id: number): Promise<void> {
    const url = `http://127.0.0.1:${port}/api/content/${model}/${id}`;
    const { statusCode, body } = await request(url, { dispatcher: agent, headers: auth.headers });
    await body.dump();
    if (statusCode !== 200) throw new Error(`${url}: ${statusCode}`);
  }
  async function cacheRecords(first: number, count: number): Promise<void> {
    for (let done = 0; done < count; done += 50)
      await Promise.all(Array.from({ length: 50 }, (_, index) => read('webform', first + done + index)));
  }
  const fill = `INSERT INTO content.webform (id, title, body) SELECT n, 'Old', $2 FROM generate_series(1, $1::int) AS n`;
  await pool.query(fill, [singles + rows, JSON.stringify({ text: 'x'.repeat(300) })]);
  await pool.query(
    `INSERT INTO content.pathway (id, title, body) SELECT n, 'Other', '{}' FROM generate_series(1, 100) AS n`,
  );

  // Until then, a check could clear a record that is being cached.
  const compared = `SELECT pg_visible_in_snapshot((SELECT max(xid) FROM content.record), compared) AS done FROM content.change_epoch`;
  await until(
    'the new records were compared',
    async () => (await pool.query(compared)).rows[0].done === true,
  );
  // Redis reports each deleted key.
  const waiting = new Map<string, (at: number) => void>();
  const listener = redis.admin.duplicate();
  listener.on('message', (_, key: string) => waiting.get(key)?.(performance.now()));
  await redis.admin.config('SET', 'notify-keyspace-events', 'Eg');
  await listener.subscribe('__keyevent@0__:del');
  const cleared = (id: number) =>
    new Promise<number>((resolve, reject) => {
      waiting.set(`webform:${id}`, resolve);
      setTimeout(reject, 60_000, new Error(`webform ${id} was not cleared within 60 s`)).unref();
    });

  console.log('single changes');
  await cacheRecords(1, singles);
  await sleep(3_000);
  const delays: number[] = [];
  let next = 1;
  async function changeOne(): Promise<void> {
    const id = next++;
    const gone = cleared(id);
    await pool.query(`UPDATE content.webform SET title = 'New' WHERE id = $1`, [id]);
    const committed = performance.now();
    delays.push((await gone) - committed);
  }
  await openLoop(changeOne, perSecond, singles / perSecond);
  const single = timesOf(delays);

  console.log('one large change');
  await cacheRecords(singles + 1, cachedRows);
  const readOther = () => read('pathway', 1 + Math.floor(Math.random() * 100));
  await openLoop(readOther, readsPerSecond, 5);
  const before = await openLoop(readOther, readsPerSecond, 15);
  const gone = Promise.all(Array.from({ length: cachedRows }, (_, index) => cleared(singles + 1 + index)));
  const reading = openLoop(readOther, readsPerSecond, 15);
  await pool.query(`UPDATE content.webform SET title = 'New' WHERE id > $1`, [singles]);
  const committed = performance.now();
  await gone;
  const bulkMs = performance.now() - committed;
  const during = await reading;
  const timesIn = (outcomes: Outcome[]) => outcomes.map(({ ms }) => ms);
  const p95 = (outcomes: Outcome[]) => percentile(timesIn(outcomes), 0.95);
  const ratio = p95(during) / p95(before);
  const errors = [...before, ...during].filter(({ error }) => error).length;

  const verdicts = [
    {
      isHeld: single.p99 <= goals.single && single.count === singles, // an uncleared change has no delay
      text: `single changes: p99 ${single.p99.toFixed(0)} ms from the commit to the cleared record, the goal is at most ${goals.single}`,
    },
    {
      isHeld: bulkMs <= goals.bulk,
      text: `${rows} records changed by one statement: cleared after ${(bulkMs / 1000).toFixed(1)} s, the goal is at most ${goals.bulk / 1000}`,
    },
    {
      isHeld: ratio <= goals.reads && errors === 0,
      text: `other reads meanwhile: p95 ${p95(during).toFixed(1)} ms, ${ratio.toFixed(2)} times that before (${p95(before).toFixed(1)} ms), the goal is at most ${goals.reads}; ${errors} failed`,
    },
  ];
  const reads = { before: timesOf(timesIn(before)), during: timesOf(timesIn(during)) };
  const bulk = { rows, cached: cachedRows, ms: bulkMs };
  const versions = { ...stores.versions, redis: await redisVersion(redis.admin) };
  conclude('changes', verdicts, { settings: { scale, perSecond }, verdicts, single, bulk, reads }, versions);
  listener.disconnect();
  await Promise.all([pool.end(), agent.close(), redis.stop()]);
} finally {
  await stopAll();
  await stores.stop();
}
