import { expect, test } from '@jest/globals';
import { runInContext } from './context.ts';
import { createLogger } from './logger.ts';

function capture() {
  const lines: string[] = [];
  const logger = createLogger('auth', 'debug', { write: (line) => void lines.push(line) });
  return { logger, lines };
}

test('a line has time, level, service, request id and message', () => {
  const { logger, lines } = capture();
  const context = { requestId: 'r-1', route: '/api/me', database: { calls: 0, ms: 0 } };
  runInContext(context, () => logger.info({ port: 1 }, 'ready'));
  const line = JSON.parse(lines[0]!) as Record<string, string>;
  expect(line).toMatchObject({
    level: 'info',
    service: 'auth',
    request_id: 'r-1',
    message: 'ready',
    port: 1,
  });
  expect(Date.parse(line['time']!)).toBeGreaterThan(0);
});

test('removes secrets from all parts of a line', () => {
  const { logger, lines } = capture();
  const jwt = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl';
  const cause = new Error('connect postgres://app:hunter2@db/platform failed');
  logger.error({ error: new Error(`bad header: Bearer ${jwt}`, { cause }) }, `token was ${jwt}`);
  logger.info({ headers: { authorization: `Bearer ${jwt}`, cookie: 'hunter2' }, password: 'hunter2' });
  logger.info({ body: { client_secret: 'hunter2', refresh_token: 'hunter2' } });
  const log = lines.join('');
  expect(log).not.toContain('hunter2');
  expect(log).not.toContain('eyJ');
  expect(log).toContain('postgres://app:[secret]@db/platform');
});
