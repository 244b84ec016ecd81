import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import pg from 'pg';
import { createTestDatabase, type TestDatabase } from '../../test/support/test-database.ts';
import { until } from '../../test/support/wait.ts';
import { createLogger } from './logger.ts';
import { createMetrics } from './metrics.ts';
import { createSlowLog, type SlowLog } from './slow-log.ts';

let database: TestDatabase;
let owner: pg.Client;
beforeAll(async () => {
  database = await createTestDatabase();
  owner = new pg.Client(database.url);
  await owner.connect();
});
afterAll(async () => {
  await owner?.end();
  await database?.drop();
});

let slowLog: SlowLog;
let isClosed: boolean;
afterEach(async () => {
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
  slowLog.request({ method: 'GET', route: '/api/me', status: 200, ms: 501, requestId });
const rows = async () => (await owner.query('SELECT FROM logs.slow_request')).rowCount;

test('requests and queries become rows', async () => {
  start(database.url);
  request();
  slowLog.query({ statement: "SELECT $1, 'a secret'", ms: 201 });
  await until('they are written', async () => (await rows()) === 1);
  const { rows: queries } = await owner.query('SELECT service, statement, duration_ms FROM logs.slow_query');
  expect(queries).toEqual([{ service: 'test', statement: 'SELECT $1, ?', duration_ms: 201 }]);
});

test('the logs database is full: rows are dropped and counted, and written again when it has room', async () => {
  await owner.query(`CREATE FUNCTION logs.full() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$`);
  await owner.query(
    'CREATE TRIGGER full_disk BEFORE INSERT ON logs.slow_request EXECUTE FUNCTION logs.full()',
  );
  const { log, dropped } = start(database.url);
  const before = await rows();
  request();
  await until('it is dropped', async () => (await dropped()) === 1);
  expect(log).toMatchObject([{ message: 'slow log rows were dropped', rows: 1 }]);
  await owner.query('DROP TRIGGER full_disk ON logs.slow_request');
  request();
  await until('it is written', async () => (await rows()) === before! + 1);
  expect(await dropped()).toBe(1);
});

const sockets = new Set<Socket>();
let deaf: Server | undefined;
afterAll(() => {
  for (const socket of sockets) socket.destroy();
  deaf?.close();
});
/** Takes connections and never says anything. */
async function hanging(): Promise<string> {
  deaf = createServer((socket) => void sockets.add(socket.on('error', () => undefined))).listen(
    0,
    '127.0.0.1',
  );
  await once(deaf, 'listening');
  return `postgres://nobody@127.0.0.1:${(deaf.address() as AddressInfo).port}/logs`;
}

test.each([
  ['away', async () => 'postgres://nobody@127.0.0.1:1/logs'],
  ['hanging', hanging],
])(
  'the logs database is %s: nobody waits, a full queue drops and counts, and closing ends',
  async (_, url) => {
    const { dropped } = start(await url());
    request();
    // While the first row waits for its database.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    const begun = performance.now();
    for (let count = 0; count < 5_000; count += 1) request(String(count));
    // A tenth of a millisecond for each would be a lot.
    expect(performance.now() - begun).toBeLessThan(5_000);
    expect(await dropped()).toBeGreaterThanOrEqual(4_000);
    const closing = performance.now();
    await slowLog.close();
    isClosed = true;
    expect(performance.now() - closing).toBeLessThan(20_000);
  },
);
