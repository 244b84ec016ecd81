import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { startProxy } from '../../test/support/proxy.ts';
import { startTcpServer } from '../../test/support/tcp-server.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { createTestDatabase, type TestDatabase } from '../../test/support/test-database.ts';
import { until } from '../../test/support/wait.ts';
import { ConfigError } from './config.ts';
import { runInContext, type RequestContext, beginSpan, inSpan } from './context.ts';
import { expose } from './health.ts';
import { createLogger } from './logger.ts';
import { createMetrics } from './metrics.ts';
import { migrate } from './migrations.ts';
import { createDatabase, isUnavailable, type Database, type DatabaseOptions } from './postgres.ts';
import { createSlowLog, type SlowLog } from './slow-log.ts';
import { sentSpans } from './testing/sent-spans.ts';

const folder = new URL('migrations/', import.meta.url);
const metrics = createMetrics('letters');
const logger = createLogger('letters', 'silent');
let own: TestDatabase;
let slowLog: SlowLog;
let database: Database;
let direct: pg.Pool;

function open(more: Partial<DatabaseOptions> = {}): Database {
  return createDatabase({ url: own.url, logger, metrics, slowLog, slowQueryMs: 60_000, ...more });
}
const contextOf = (route: string): RequestContext => ({
  requestId: 'r-1',
  route,
  database: { calls: 0, ms: 0 },
});
const slowQueries = async () => (await metrics.slowQueries.get()).values[0]?.value ?? 0;

/** Moves the clock by an hour for all running measurements. */
function letAnHourPass(): void {
  const now = performance.now.bind(performance);
  jest.spyOn(performance, 'now').mockImplementation(() => now() + 3_600_000);
}

/** Keeps both connections of `database` in transactions until the returned function is called. */
async function holdConnections(): Promise<() => Promise<unknown>> {
  const gate = Promise.withResolvers<void>();
  const begun = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const held = begun.map(({ resolve }) =>
    database.transaction(() => {
      resolve();
      return gate.promise;
    }),
  );
  await Promise.all(begun.map(({ promise }) => promise));
  return () => {
    gate.resolve();
    return Promise.all(held);
  };
}

beforeAll(async () => {
  own = await createTestDatabase();
  direct = new pg.Pool({ connectionString: own.url, max: 2 });
  slowLog = createSlowLog(own.url, metrics, logger);
  database = open({ maxConnections: 2 });
});
afterEach(() => void jest.restoreAllMocks());
afterAll(async () => {
  await database.close();
  await slowLog.close();
  await direct.end();
  await own.drop();
});

test('measures a call and counts it for its request', async () => {
  const context = contextOf('/api/x');
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
  const before = await slowQueries();
  const eager = open({ slowQueryMs: 0 });
  const statement = 'SELECT $1::text';
  await runInContext(contextOf('/api/slow'), () => eager.query('slow', statement, ['a secret']));
  await eager.close();
  const row = await until('the row is there', async () => {
    const found = await direct.query<Record<string, unknown>>('SELECT * FROM logs.slow_query');
    return found.rows.find(({ route }) => route === '/api/slow');
  });
  expect(row).toMatchObject({ service: 'letters', statement, request_id: 'r-1' });
  expect(JSON.stringify(row)).not.toContain('secret');
  expect(await slowQueries()).toBe(before + 1);
});

test('the wait for a connection does not make a query slow', async () => {
  const before = await slowQueries();
  const release = await holdConnections();
  const waiting = database.query('one', 'SELECT 1');
  letAnHourPass();
  await Promise.all([release(), waiting]);
  expect(await slowQueries()).toBe(before);
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
  // A process that is suspended or cut off must not keep its locks.
  const limit = await database.transaction((query) =>
    query('limit', 'SHOW idle_in_transaction_session_timeout'),
  );
  expect(limit.rows).toEqual([{ idle_in_transaction_session_timeout: '30s' }]);
  expect((await database.query('count', 'SELECT * FROM t')).rowCount).toBe(1);
});

describe('counts the waits of a transaction as database time', () => {
  const hour = { ms: expect.closeTo(3_600_000, -6) as unknown };

  test('for a connection', async () => {
    const context = contextOf('/api/x');
    const release = await holdConnections();
    const waiting = runInContext(context, () => database.transaction(async () => undefined));
    letAnHourPass();
    await Promise.all([release(), waiting]);
    expect(context.database).toMatchObject(hour);
  });

  test('for the commit', async () => {
    const context = contextOf('/api/x');
    await direct.query(`CREATE TABLE slow_disk (n int);
      CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql
        AS 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END';
      CREATE CONSTRAINT TRIGGER at_end AFTER INSERT ON slow_disk DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION wait()`);
    const blocking = new pg.Client(own.url);
    await blocking.connect();
    await blocking.query('SELECT pg_advisory_lock(1)');
    const insert = () => database.transaction((query) => query('insert', 'INSERT INTO slow_disk VALUES (1)'));
    const committed = runInContext(context, insert);
    await until('the commit waits', async () => {
      const waits = "SELECT FROM pg_stat_activity WHERE wait_event = 'advisory' AND query = 'COMMIT'";
      return (await direct.query(waits)).rowCount === 1;
    });
    letAnHourPass();
    await blocking.end();
    await committed;
    expect(context.database).toMatchObject(hour);
  });
});

test('cancels a statement over its limit with 503', async () => {
  const { query, close } = open({ statementTimeoutMs: 100 });
  const cancelled = { status: 503, cause: { code: '57014' } };
  await expect(query('hang', 'SELECT pg_sleep(300)').finally(close)).rejects.toMatchObject(cancelled);
});

test('replaces connections that the server has ended', async () => {
  await database.query('one', 'SELECT 1');
  await direct.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'letters' AND datname = current_database()",
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
    // The connection must be lost while no query runs.
    await sleep(100);
    await query('late', 'SELECT 1');
  });
  await expect(broken).rejects.toMatchObject({ status: 503 });
  expect((await database.query('one', 'SELECT 1')).rowCount).toBe(1);
});

test('leaves idle connections whose server is gone, and uses new ones', async () => {
  const proxy = await startProxy(new URL(own.url));
  const moved = open({ url: proxy.url });
  await Promise.all(Array.from({ length: 10 }, () => moved.query('one', 'SELECT pg_sleep(0.1)')));
  proxy.blackhole();
  await expect(moved.ping()).rejects.toMatchObject({ status: 503 });
  // For the next second, nobody waits for the database.
  const refused = { status: 503, cause: { message: 'the database does not respond' } };
  await expect(moved.query('one', 'SELECT 1')).rejects.toMatchObject(refused);
  // With the limit of a statement (6 s) for each connection, this takes 13 s.
  await until('it responds again', () => moved.ping().then(() => true), 10_000);
  proxy.blackhole();
  await Promise.allSettled([moved.ping(), moved.close()]);
  await proxy.close();
});

test('a transaction in a database that hangs ends after the limit of one statement', async () => {
  const proxy = await startProxy(new URL(own.url));
  const moved = open({ url: proxy.url });
  const late = sleep(10_000, 'late', { ref: false });
  const hanging = moved.transaction(async (query) => {
    await query('one', 'SELECT 1');
    proxy.limitReplies(0);
    await query('one', 'SELECT 1');
  });
  // The limit is 6 s. A ROLLBACK would wait as long again. A pause does not change the order of timers.
  await expect(Promise.race([hanging, late])).rejects.toMatchObject({ status: 503 });
  proxy.limitReplies(Infinity);
  // On the same connection, this would be part of the transaction.
  await moved.query('make', 'CREATE TABLE afterwards ()');
  expect((await direct.query(`SELECT to_regclass('afterwards') AS made`)).rows).toEqual([
    { made: 'afterwards' },
  ]);
  await moved.close();
  await proxy.close();
});

test('a database that responds within transactions is not unavailable, although no connection is free', async () => {
  const single = open({ maxConnections: 1 });
  const busy = single.transaction(async (query) => {
    for (let n = 0; n < 13; n += 1) await query('work', 'SELECT pg_sleep(0.5)');
  });
  // The transaction has begun.
  await sleep(100);
  await expect(single.query('one', 'SELECT 1')).rejects.toMatchObject({ status: 503 });
  expect((await single.query('one', 'SELECT 1')).rowCount).toBe(1);
  await busy;
  const pid = async () => (await single.query('pid', 'SELECT pg_backend_pid()')).rows;
  const before = await pid();
  const onStandby = single.transaction((query) => query('write', "DO 'BEGIN RAISE SQLSTATE ''25006''; END'"));
  await expect(onStandby).rejects.toMatchObject({ status: 503 });
  expect(await pid()).not.toEqual(before);
  await single.close();
});

test('an unavailable database is a 503', async () => {
  expect(['ENETUNREACH', 'EAI_FAIL', '55000'].every((code) => isUnavailable({ code }))).toBe(true);
  const unreachable = open({ url: 'postgres://nobody@127.0.0.1:1/nowhere' });
  await expect(unreachable.query('one', 'SELECT 1')).rejects.toMatchObject({
    status: 503,
    headers: { 'Retry-After': '1' },
  });
  await unreachable.close();
});

test('a refused login is a 503, after the password or name of the database was changed', async () => {
  for (const part of ['password', 'pathname']) {
    const closed = open({ url: Object.assign(new URL(own.url), { [part]: 'another' }).href });
    const refused = { status: 503, cause: { code: expect.stringMatching(/^(28P01|3D000)$/) as unknown } };
    await expect(closed.query('one', 'SELECT 1')).rejects.toMatchObject(refused);
    await closed.close();
  }
});

test('migrate refuses a wrong login as a configuration error, and its wait can be aborted', async () => {
  const { href: url } = Object.assign(new URL(own.url), { password: 'wrong' });
  await expect(migrate({ url, schema: 'logs', folder, logger })).rejects.toThrow(ConfigError);
  const signal = AbortSignal.timeout(100);
  const migrated = migrate({ url: 'postgres://x@127.0.0.1:1/x', schema: 'logs', folder, logger, signal });
  await expect(migrated).rejects.toThrow('aborted');
});

test('migrate retries while the database accepts connections but does not answer', async () => {
  const silent = await startTcpServer((socket, count) => void (count === 1 && socket.write('E')));
  const url = `postgres://x@127.0.0.1:${silent.port}/x?sslmode=no-verify`;
  const waiting = new AbortController();
  const migrated = migrate({ url, schema: 'logs', folder, logger, signal: waiting.signal });
  await until('it tries again', () => silent.connections() > 2);
  waiting.abort();
  await expect(migrated).rejects.toThrow('aborted');
  silent.close();
});

test('migrate retries after its connection was closed during a migration', async () => {
  const files = temporaryFolder();
  writeFileSync(join(files, '001-slow.sql'), '-- Up Migration\nSELECT pg_sleep(300);');
  const waiting = new AbortController();
  const options = { url: own.url, schema: 'slow', folder: pathToFileURL(`${files}/`), logger };
  const migrated = migrate({ ...options, signal: waiting.signal });
  const end = `SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(300)%' AND state = 'active'
               AND query NOT LIKE '%pg_stat_activity%'`;
  for (let time = 1; time <= 2; time += 1)
    await until('it migrates', async () => (await direct.query(end)).rowCount === 1);
  waiting.abort();
  await expect(migrated).rejects.toThrow('aborted');
});

test('sends the trace of a slow query, which is its exemplar', async () => {
  const sent = sentSpans();
  const slowMetrics = createMetrics('slow');
  const slow = open({ metrics: slowMetrics, slowQueryMs: 0 });
  const request = beginSpan('request', { kind: 'server' })!;
  await inSpan(request, () => slow.query('one', 'SELECT 1'));
  request.end();
  expect(sent.map(({ name }) => name)).toEqual(['connect', 'one', 'request']);
  const { text } = await expose(slowMetrics.registry, 'application/openmetrics-text');
  expect(text).toContain(`trace_id="${request.traceId}"`);
  const left = beginSpan('left', { kind: 'server' })!;
  const late = inSpan(left, () => slow.query('late', 'SELECT 1'));
  left.end();
  await late;
  expect(sent.at(-1)!.name).toBe('late');
  await slow.close();
});
