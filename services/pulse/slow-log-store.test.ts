import { expect, test } from '@jest/globals';
import { createDatabase, createLogger, createMetrics, createSlowLog } from '@content-platform/chassis';
import { createTestDatabase } from '../../test/support/test-database.ts';
import { useStarted } from '../../test/support/use-started.ts';
import { until } from '../../test/support/wait.ts';
import { createSlowLogStore } from './slow-log-store.ts';

const logger = createLogger('pulse', 'silent');
const metrics = createMetrics('pulse');
const testDatabase = useStarted(createTestDatabase);

test('returns nothing before the first slow row, then groups with the newest first and their newest trace', async () => {
  const database = createDatabase({ url: testDatabase.url, logger, metrics });
  const store = createSlowLogStore(database);
  expect(await store.newest()).toEqual({ requests: [], queries: [] });
  const log = createSlowLog(testDatabase.url, metrics, logger);
  const one = { method: 'GET', status: 200, request_id: 'x' };
  const older = { ...one, route: '/api/letters', duration_ms: 900, at: new Date(Date.now() - 60_000) };
  log.request(older);
  log.request({ ...one, route: '/api/me', duration_ms: 550, trace_id: 'b'.repeat(32) });
  log.request({ ...one, route: '/api/me', duration_ms: 700, trace_id: 'a'.repeat(32) });
  log.request({ ...one, route: '/api/me', duration_ms: 600 });
  log.query({ statement: 'SELECT $1', ms: 300 });
  const slow = await until('they are written', async () => {
    const now = await store.newest();
    return now.requests.length > 0 && now.queries.length > 0 && now;
  });
  const me = { method: 'GET', route: '/api/me', count: 3, slowest_ms: 700, trace_id: 'a'.repeat(32) };
  expect(slow.requests).toEqual([
    { ...me, newest_at: expect.stringMatching(/Z$/) },
    expect.objectContaining({ route: '/api/letters' }),
  ]);
  expect(slow.queries).toMatchObject([
    { service: 'pulse', statement: 'SELECT $1', count: 1, slowest_ms: 300 },
  ]);
  await log.close();
  await database.close();
});
