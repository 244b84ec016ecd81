import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import pg from 'pg';
import { startTcpServer } from '../../test/support/tcp-server.ts';
import { createTestDatabase } from '../../test/support/test-database.ts';
import { useStarted } from '../../test/support/use-started.ts';
import { until, within } from '../../test/support/wait.ts';
import { createLogger } from './logger.ts';
import { createMetrics } from './metrics.ts';
import { createSlowLog, type SlowLog } from './slow-log.ts';

let owner: pg.Client;
afterAll(() => owner?.end());
const database = useStarted(createTestDatabase);
beforeAll(async () => {
  owner = new pg.Client(database.url);
  await owner.connect();
});

let slowLog: SlowLog;
let isClosed: boolean;
afterEach(async () => {
  jest.restoreAllMocks();
  if (!isClosed) await slowLog.close();
});

function start(url: string) {
  const log: Record<string, unknown>[] = [];
  const write = (line: string) => void log.push(JSON.parse(line) as Record<string, unknown>);
  const metrics = createMetrics('test');
  isClosed = false;
  slowLog = createSlowLog(url, metrics, createLogger('test', 'info', { write }));
  const dropped = async () => (await metrics.slowLogDropped.get()).values[0]!.value;
  return { log, dropped };
}

const request = (requestId = 'some-request') =>
  slowLog.request({ method: 'GET', route: '/api/me', status: 200, duration_ms: 501, request_id: requestId });
const rows = async () => (await owner.query('SELECT FROM logs.slow_request')).rowCount;

test('records requests and queries as rows', async () => {
  start(database.url);
  for (let count = 0; count < 900; count += 1) request(String(count));
  slowLog.query({ statement: 'SELECT $1', ms: 201 });
  await until('the first batch is written', async () => (await rows())! > 0);
  await until('the requests are written', async () => (await rows()) === 900, 7_000);
  const queries = await until('the query is written', async () => {
    const found = await owner.query('SELECT service, statement, duration_ms FROM logs.slow_query');
    return found.rowCount !== 0 && found.rows;
  });
  expect(queries).toEqual([{ service: 'test', statement: 'SELECT $1', duration_ms: 201 }]);
});

test('drops and counts rows while the logs database is full', async () => {
  await owner.query(`CREATE FUNCTION logs.full() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
    CREATE TRIGGER full_disk BEFORE INSERT ON logs.slow_request EXECUTE FUNCTION logs.full()`);
  const { log, dropped } = start(database.url);
  const before = await rows();
  request();
  await until('it is dropped', async () => (await dropped()) === 1);
  expect(log).toMatchObject([{ message: 'slow log rows were dropped', dropped: 1 }]);
  await owner.query('DROP TRIGGER full_disk ON logs.slow_request');
  request();
  await until('it is written', async () => (await rows()) === before! + 1);
  expect(await dropped()).toBe(1);
});

test('a failed deletion of old rows drops no new rows', async () => {
  await owner.query(`CREATE FUNCTION logs.keep() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'canceling statement due to statement timeout' USING ERRCODE = '57014'; END $$;
    CREATE TRIGGER keep BEFORE DELETE ON logs.slow_request FOR EACH STATEMENT EXECUTE FUNCTION logs.keep()`);
  const { log, dropped } = start(database.url);
  const before = await rows();
  request();
  await until('it is written', async () => (await rows()) === before! + 1);
  const now = performance.now.bind(performance);
  jest.spyOn(performance, 'now').mockImplementation(() => now() + 61_000);
  request();
  await until('the deletion has failed', () => log.length > 0);
  expect(await dropped()).toBe(0);
  await until('the second row is written', async () => (await rows()) === before! + 2);
  request();
  await until('the next row is written', async () => (await rows()) === before! + 3);
  expect(log).toMatchObject([{ message: 'old slow log rows were not deleted; retrying in an hour' }]);
  await owner.query('DROP TRIGGER keep ON logs.slow_request');
});

test('deletes rows older than 30 days, not at the start but within a minute', async () => {
  const old = `INSERT INTO logs.slow_request (at, service, method, route, status, duration_ms, request_id)
               SELECT now() - interval '1 day' * CASE n WHEN 0 THEN 29 ELSE 31 END, 'test', 'GET', '/old', 200, 501, 'x' FROM generate_series(0, 2500) AS n`;
  await owner.query(old);
  const oldRows = async () =>
    (await owner.query(`SELECT FROM logs.slow_request WHERE route = '/old'`)).rowCount;
  start(database.url);
  const before = await rows();
  request();
  await until('the new row is written', async () => (await rows()) === before! + 1);
  expect(await oldRows()).toBe(2_501);
  await slowLog.close();
  // Also by a process that records no row.
  start(database.url);
  const now = performance.now.bind(performance);
  jest.spyOn(performance, 'now').mockImplementation(() => now() + 61_000);
  await until('the old rows are deleted', async () => (await oldRows()) === 1);
  expect(await rows()).toBe(before! + 1 - 2_500);
});

test.each(['unavailable', 'unresponsive'])(
  'an %s logs database delays nothing: a full queue drops and counts rows, and close() ends',
  async (how) => {
    const silent = await startTcpServer();
    const port = how === 'unresponsive' ? silent.port : 1;
    const { log, dropped } = start(`postgres://nobody@127.0.0.1:${port}/logs`);
    for (let count = 0; count < 5_000; count += 1) request(String(count));
    expect(await dropped()).toBe(4_000);
    await until('a write was attempted', () => log.length + silent.connections() > 0);
    await within('closing', slowLog.close());
    isClosed = true;
    silent.close();
  },
);
