import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { createLogger } from '@content-platform/chassis';
import { until } from '../../test/support/wait.ts';
import { startGateway } from '../testing/gateway.ts';
import type { RequestContext } from '../request-context.ts';
import { mint } from '../testing/tokens.ts';
import { createRefusalLog } from '../observe.ts';

const lines: Record<string, unknown>[] = [];
const logger = createLogger('gateway', 'info', {
  write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>),
});
let gateway: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => void (gateway = await startGateway({ logger })));
afterAll(() => gateway.close());
beforeEach(() => void (lines.length = 0));

const get = (path: string, token: string) =>
  fetch(gateway.origin + path, { headers: { Authorization: `Bearer ${token}` } });
const withMessage = (message: RegExp) => lines.filter((line) => message.test(String(line['message'])));

test('logs a 403 with the caller', async () => {
  expect((await get('/api/admin/users/12', mint())).status).toBe(403);
  await until('the line was written', () => withMessage(/forbidden/).length === 1);
  expect(withMessage(/forbidden/)[0]).toMatchObject({
    level: 'info',
    caller: 'user:7',
    method: 'GET',
    route: '/api/admin/users/:id',
    address: '127.0.0.1',
    request_id: expect.any(String),
  });
});

test('logs 30 of the 403 of a caller within a minute, and that there are more', () => {
  let time = 0;
  const note = createRefusalLog(logger, () => time);
  const refusal = { method: 'GET', route: '/api/admin/users', status: 403 };
  const by = (id: number) => {
    const caller = { kind: 'user', id } as RequestContext['caller'];
    note({ requestId: 'r', address: '192.0.2.1', caller } as RequestContext, refusal);
  };
  for (let n = 0; n < 500; n += 1) by(7);
  expect(withMessage(/forbidden/)).toHaveLength(30);
  expect(withMessage(/403/)).toMatchObject([{ level: 'warn', caller: 'user:7' }]);
  by(8);
  time += 61_000;
  by(7);
  expect(withMessage(/forbidden/).slice(30)).toMatchObject([{ caller: 'user:8' }, { caller: 'user:7' }]);
});

test('logs one line for repeated 401 of an address, without the token', async () => {
  const token = mint({ exp: 1 });
  for (let n = 0; n < 9; n += 1) await get('/api/me', token);
  expect(withMessage(/401/)).toEqual([]);
  for (let n = 0; n < 5; n += 1) await get('/api/me', token);
  await until('the line was written', () => withMessage(/401/).length > 0);
  expect(withMessage(/401/)).toMatchObject([{ level: 'warn', address: '127.0.0.1', route: '/api/me' }]);
  expect(JSON.stringify(lines)).not.toContain(token);
});

test('counts the 401 of a minute only', () => {
  let time = 0;
  const note = createRefusalLog(logger, () => time);
  const context = { requestId: 'r', address: '192.0.2.1' } as Parameters<typeof note>[0];
  const refusal = { method: 'GET', route: '/api/me', status: 401 };
  for (let n = 0; n < 30; n += 1) {
    note(context, refusal);
    time += 10_000;
  }
  expect(lines).toEqual([]);
});
