import { expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { openSync } from 'node:fs';
import { runInContext } from './context.ts';
import { createLogger } from './logger.ts';

function capture() {
  const lines: string[] = [];
  const logger = createLogger('auth', 'debug', { write: (line) => void lines.push(line) });
  return { logger, lines };
}

test('a line has time, level, service, request id, message, and the code of an error as text', () => {
  const { logger, lines } = capture();
  const context = { requestId: 'r-1', route: '/api/me', database: { calls: 0, ms: 0 } };
  runInContext(context, () => logger.info({ port: 1, error: new DOMException('', 'TimeoutError') }, 'ready'));
  const line = JSON.parse(lines[0]!) as Record<string, string>;
  const expected = { level: 'info', service: 'auth', request_id: 'r-1', message: 'ready', port: 1 };
  expect(line).toMatchObject({ ...expected, error: { code: '23' } });
  expect(Date.parse(line['time']!)).toBeGreaterThan(0);
});

// macOS has no /dev/full.
(process.platform === 'linux' ? test : test.skip)('a full disk neither ends nor blocks the process', () => {
  const program = `const { createLogger } = await import('${new URL('logger.ts', import.meta.url).href}');
    const logger = createLogger('auth'); logger.warn('x'); setTimeout(() => logger.fatal('y'), 100);
    setTimeout(() => process.exit(3), 200);`;
  const stdio = ['ignore', openSync('/dev/full', 'w'), 'ignore'] as ['ignore', number, 'ignore'];
  const options = { stdio, timeout: 50_000, killSignal: 'SIGKILL' } as const;
  const args = ['--input-type=module', '-e', program];
  expect(spawnSync(process.execPath, args, options).status).toBe(3);
});

test('removes secrets from all parts of a line', () => {
  const { logger, lines } = capture();
  const jwt = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl';
  const cause = new AggregateError([new Error('connect postgres://app:hunter2@db/platform failed')], 'two');
  logger.error({ error: new Error(`bad header: Bearer ${jwt}`, { cause }) }, `token was ${jwt}`);
  logger.info({ headers: { authorization: `Bearer ${jwt}`, cookie: 'hunter2' }, password: 'hunter2' });
  logger.info({ body: { client_secret: 'hunter2', refresh_token: 'hunter2' } });
  const log = lines.join('');
  expect(log).not.toContain('hunter2');
  expect(log).not.toContain('eyJ');
  expect(log).toContain('postgres://app:[secret]@db/platform');
});
