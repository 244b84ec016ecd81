import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { createTestDatabase, type TestDatabase } from '../../test/support/test-database.ts';
import { until } from '../../test/support/wait.ts';
import { ConfigError } from './config.ts';
import { runInContext, type RequestContext } from './context.ts';
import { expose } from './exposition.ts';
import { createLogger } from './logger.ts';
import { createMetrics } from './metrics.ts';
import { migrate } from './migrations.ts';
import { createDatabase, type Database } from './postgres.ts';
import { createSlowLog, type SlowLog } from './slow-log.ts';
import { sentSpans } from './testing/sent-spans.ts';
import { beginSpan, inSpan } from './tracing.ts';

const metrics = createMetrics('letters');
const logger = createLogger('letters', 'silent');
let own: TestDatabase;
let slowLog: SlowLog;
let database: Database;
let direct: pg.Pool;

beforeAll(async () => {
  own = await createTestDatabase();
  direct = new pg.Pool({ connectionString: own.url, max: 2 });
  slowLog = createSlowLog(own.url, metrics, logger);
  const options = { url: own.url, logger, metrics, slowLog, slowQueryMs: 1_000, maxConnections: 2 };
  database = createDatabase({ ...options, statementTimeoutMs: 3_000 });
});
afterAll(async () => {
  await database.close();
  await slowLog.close();
  await direct.end();
  await own.drop();
});

test('measures a call and counts it for its request', async () => {
  const context: RequestContext = { requestId: 'r-1', route: '/api/x', database: { calls: 0, ms: 0 } };
  await runInContext(context, async () => {
    expect((await database.query('one', 'SELECT $1::int AS n', [1])).rows).toEqual([{ n: 1 }]);
    await database.query('two', 'SELECT 2');
  });
  expect(context.database.calls).toBe(2);
  expect(context.database.ms).toBeGreaterThan(0);
  const { values } = await metrics.queryDuration.get();
  const counts = values.filter(({ metricName }) => metricName?.endsWith('_count'));
  expect(counts.map(({ labels, value }) => [labels.operation, value])).toEqual(
    expect.arrayContaining([
      ['one', 1],
      ['two', 1],
    ]),
  );
});

test('records a slow query with its text, without its values', async () => {
  const context: RequestContext = { requestId: 'r-2', route: '/api/slow', database: { calls: 0, ms: 0 } };
  const counted = async () => (await metrics.slowQueries.get()).values[0]?.value ?? 0;
  const before = await counted();
  const statement = 'SELECT pg_sleep(1.2), $1::text';
  await runInContext(context, () => database.query('slow', statement, ['a secret']));
  const row = await until('the row is there', async () => {
    const found = await direct.query('SELECT * FROM logs.slow_query').catch(() => undefined);
    return found?.rows.find((each: Record<string, unknown>) => each['route'] === '/api/slow') as
      Record<string, unknown> | undefined;
  });
  expect(row).toMatchObject({
    service: 'letters',
    statement,
    route: '/api/slow',
    request_id: 'r-2',
  });
  expect(JSON.stringify(row)).not.toContain('secret');
  expect((await counted()) - before).toBe(1);
});

test('the wait for a connection does not make a query slow', async () => {
  const slow = async () => (await metrics.slowQueries.get()).values[0]?.value ?? 0;
  const connects = async () => {
    const { values } = await metrics.queryDuration.get();
    const sums = values.filter(({ metricName }) => metricName?.endsWith('_sum'));
    return sums.find(({ labels }) => labels.operation === 'connect')?.value ?? 0;
  };
  const [slowBefore, secondsBefore] = [await slow(), await connects()];
  const others = [1, 2].map(() => database.query('busy', 'SELECT pg_sleep(1.3)'));
  await database.query('one', 'SELECT 1');
  await Promise.all(others);
  expect((await slow()) - slowBefore).toBe(2);
  expect((await connects()) - secondsBefore).toBeGreaterThan(1);
});

test('rolls a failed transaction back', async () => {
  await database.query('make', 'CREATE TABLE t (n int PRIMARY KEY)');
  const twice = database.transaction(async (query) => {
    await query('insert', 'INSERT INTO t VALUES (1)');
    await query('insert', 'INSERT INTO t VALUES (1)');
  });
  await expect(twice).rejects.toMatchObject({ code: '23505' });
  expect((await database.query('count', 'SELECT * FROM t')).rowCount).toBe(0);
  await database.transaction((query) => query('insert', 'INSERT INTO t VALUES (2)'));
  expect((await database.query('count', 'SELECT * FROM t')).rowCount).toBe(1);
});

describe('counts the waits of a transaction as database time', () => {
  async function msOf(work: () => Promise<unknown>): Promise<number> {
    const context: RequestContext = { requestId: 'r-3', route: '/api/x', database: { calls: 0, ms: 0 } };
    await runInContext(context, work);
    return context.database.ms;
  }

  test('for a connection', async () => {
    const others = [1, 2].map(() => database.query('busy', 'SELECT pg_sleep(0.5)'));
    expect(await msOf(() => database.transaction(async () => undefined))).toBeGreaterThan(300);
    await Promise.all(others);
  });

  test('for the commit', async () => {
    await direct.query(`CREATE TABLE slow_disk (n int);
      CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END';
      CREATE CONSTRAINT TRIGGER at_end AFTER INSERT ON slow_disk DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION wait()`);
    const insert = () => database.transaction((query) => query('insert', 'INSERT INTO slow_disk VALUES (1)'));
    expect(await msOf(insert)).toBeGreaterThan(450);
  });
});

test('cancels a statement over its limit with 503', async () => {
  await expect(database.query('hang', 'SELECT pg_sleep(30)')).rejects.toMatchObject({ status: 503 });
});

test('replaces connections that the server has ended', async () => {
  await database.query('one', 'SELECT 1');
  await direct.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'letters'",
  );
  await until('queries work again', () => database.query('one', 'SELECT 1').then(() => true));
});

test('a connection that breaks in a transaction fails that transaction only', async () => {
  const broken = database.transaction(async (query) => {
    const { rows } = await query<{ pid: number }>('pid', 'SELECT pg_backend_pid() AS pid');
    const { pid } = rows[0]!;
    await direct.query('SELECT pg_terminate_backend($1)', [pid]);
    await until('it is gone', async () => {
      const { rowCount } = await direct.query('SELECT FROM pg_stat_activity WHERE pid = $1', [pid]);
      return rowCount === 0;
    });
    // So that it is noticed while no query is under way.
    await sleep(100);
    await query('late', 'SELECT 1');
  });
  await expect(broken).rejects.toMatchObject({ status: 503 });
  expect((await database.query('one', 'SELECT 1')).rowCount).toBe(1);
});

test('an unavailable database is a 503', async () => {
  const options = { logger, metrics, slowLog, slowQueryMs: 1_000 };
  const away = createDatabase({ ...options, url: 'postgres://nobody@127.0.0.1:1/nowhere' });
  await expect(away.query('one', 'SELECT 1')).rejects.toMatchObject({
    status: 503,
    headers: { 'Retry-After': '1' },
  });
  await away.close();
});

test('a refused login is a 503, after the password or name of the database was changed', async () => {
  const options = { logger, metrics, slowLog, slowQueryMs: 1_000 };
  const [otherPassword, otherName] = [new URL(own.url), new URL(own.url)];
  otherPassword.password = 'another';
  otherName.pathname = '/another';
  for (const { href: url } of [otherPassword, otherName]) {
    const closed = createDatabase({ ...options, url });
    const refused = { status: 503, cause: { code: expect.stringMatching(/^(28P01|3D000)$/) as unknown } };
    await expect(closed.query('one', 'SELECT 1')).rejects.toMatchObject(refused);
    await closed.close();
  }
});

test('processes that start together migrate once', async () => {
  const folder = new URL('migrations/', import.meta.url);
  const empty = await createTestDatabase();
  await Promise.all([1, 2, 3].map(() => migrate({ url: empty.url, schema: 'logs', folder, logger })));
  const client = new pg.Client(empty.url);
  await client.connect();
  expect((await client.query('SELECT name FROM logs.migration')).rows).toEqual([{ name: '001-slow-logs' }]);
  await client.end();
  await empty.drop();
});

test('migrate refuses a wrong login as a configuration error, and its wait can be aborted', async () => {
  const folder = new URL('migrations/', import.meta.url);
  const wrong = new URL(own.url);
  wrong.password = 'wrong';
  await expect(migrate({ url: wrong.href, schema: 'logs', folder, logger })).rejects.toThrow(ConfigError);
  const signal = AbortSignal.timeout(100);
  const away = migrate({ url: 'postgres://x@127.0.0.1:1/x', schema: 'logs', folder, logger, signal });
  await expect(away).rejects.toThrow('aborted');
});

test('migrate retries while the database accepts connections but does not answer', async () => {
  const sockets = new Set<Socket>();
  const silent = createServer((socket) => void sockets.add(socket)).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const url = `postgres://x@127.0.0.1:${(silent.address() as AddressInfo).port}/x`;
  const folder = new URL('migrations/', import.meta.url);
  const waiting = new AbortController();
  const migrated = migrate({ url, schema: 'logs', folder, logger, signal: waiting.signal });
  await until('it tries again', () => sockets.size > 1);
  waiting.abort();
  await expect(migrated).rejects.toThrow('aborted');
  silent.close();
  for (const socket of sockets) socket.destroy();
});

test('sends the trace of a slow query, which is its exemplar', async () => {
  const sent = sentSpans();
  const slowMetrics = createMetrics('slow');
  const options = { url: own.url, logger, metrics: slowMetrics, slowLog, slowQueryMs: 20 };
  const slow = createDatabase(options);
  const request = beginSpan('request', { kind: 'server' })!;
  await inSpan(request, () => slow.query('sleep', 'SELECT pg_sleep(0.05)'));
  request.end();
  expect(sent.map(({ name }) => name)).toEqual(['connect', 'sleep', 'request']);
  const { text } = await expose(slowMetrics.registry, 'application/openmetrics-text');
  expect(text).toContain(`trace_id="${request.traceId}"`);
  await slow.close();
});
