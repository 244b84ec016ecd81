import { expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { freeRow } from '../../deploy/local/ports.ts';
import { until } from '../../test/support/wait.ts';

const main = fileURLToPath(new URL('testing/slow-service.ts', import.meta.url));

async function start(env: Record<string, string> = {}) {
  const port = await freeRow(1);
  const child = spawn(process.execPath, [main], {
    env: { PATH: process.env['PATH'], PORT: String(port), ...env },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
  const ended = once(child, 'close').then(([code]) => code as number);
  const ready = () => fetch(`http://127.0.0.1:${port + 1000}/health/ready`).then((response) => response.ok);
  return { child, port, ended, ready, output: () => output };
}

test('told to stop, it finishes what is under way, closes, and exits 0', async () => {
  const { child, port, ended, ready, output } = await start();
  await until('it is ready', ready);
  const reply = fetch(`http://127.0.0.1:${port}/`).then((response) => response.json());
  await until('the request is under way', () => output().includes('working\n'));
  child.kill('SIGTERM');
  expect(await reply).toEqual({ done: true });
  expect(await ended).toBe(0);
  expect(output()).toContain('closed\n');
});

test('a wrong setting is one line and exit 1', async () => {
  const { ended, output } = await start({ LOG_LEVEL: 'loud' });
  expect(await ended).toBe(1);
  expect(output()).toBe('slow-service: LOG_LEVEL must be debug, info, warn or error, not "loud"\n');
});

test('a taken port is one line and exit 1', async () => {
  const port = await freeRow(1);
  const other = createServer().listen(port, '127.0.0.1');
  await once(other, 'listening');
  const { ended, output } = await start({ PORT: String(port) });
  expect(await ended).toBe(1);
  expect(output()).toBe(`slow-service: PORT: cannot listen on 127.0.0.1:${port}: the port is taken\n`);
  other.close();
});
