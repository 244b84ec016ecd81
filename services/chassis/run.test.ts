import { expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { freeRow } from '../../test/support/ports.ts';
import { bareEnvironment } from '../../test/support/processes.ts';
import { until } from '../../test/support/wait.ts';

const main = fileURLToPath(new URL('testing/slow-service.ts', import.meta.url));

async function start(env: Record<string, string> = {}, ...args: string[]) {
  const port = await freeRow(1);
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...bareEnvironment, PORT: String(port), ...env },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
  const ended = once(child, 'close').then(([code]) => code as number);
  const ready = () => fetch(`http://127.0.0.1:${port + 1000}/health/ready`).then((response) => response.ok);
  return { child, port, ended, ready, output: () => output };
}

test('SIGINT lets the request under way finish, calls onStop and exits 0', async () => {
  const { child, port, ended, ready, output } = await start();
  await until('it is ready', ready);
  const reply = fetch(`http://127.0.0.1:${port}/`).then((response) => response.json());
  await until('the request is under way', () => output().includes('working\n'));
  child.kill('SIGINT');
  expect(await reply).toEqual({ done: true });
  expect(await ended).toBe(0);
  expect(output()).toContain('closed\n');
});

test('exports the thresholds of slow requests and queries as metrics', async () => {
  const { child, port, ended, ready } = await start({ SLOW_QUERY_MS: '150', SLOW_REQUEST_MS: '700' });
  await until('it is ready', ready);
  const metrics = await fetch(`http://127.0.0.1:${port + 1000}/metrics`).then((response) => response.text());
  expect(metrics).toContain('slow_threshold_seconds{kind="query"} 0.15');
  expect(metrics).toContain('slow_threshold_seconds{kind="request"} 0.7');
  child.kill('SIGINT');
  expect(await ended).toBe(0);
});

test('SIGTERM turns the process not ready and serves for another 2.5 s', async () => {
  const { child, port, ended, ready, output } = await start();
  await until('it is ready', ready);
  child.kill('SIGTERM');
  await until('it is stopping', () => output().includes('"stopping"'));
  expect(await ready()).toBe(false);
  const late = await keptConnection(port);
  late.ask('/');
  await until('the late one is answered', () => late.replies().length === 1);
  expect(late.replies()[0]).toContain('Connection: keep-alive');
  expect(await ended).toBe(0);
  await expect(keptConnection(port)).rejects.toThrow('ECONNREFUSED');
});

test('ends requests that exceed the grace period, with exit code 1', async () => {
  const { child, port, ended, ready, output } = await start({}, '200');
  await until('it is ready', ready);
  const reply = fetch(`http://127.0.0.1:${port}/`).then(
    () => 'answered',
    () => 'cut off',
  );
  await until('the request is under way', () => output().includes('working\n'));
  child.kill('SIGINT');
  expect(await reply).toBe('cut off');
  expect(await ended).toBe(1);
  expect(output()).toContain('stopped before everything was finished');
});

type Kept = Awaited<ReturnType<typeof keptConnection>>;

/** A kept connection, with all that came back over it. */
async function keptConnection(port: number) {
  const socket = connect(port, '127.0.0.1');
  let raw = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => (raw += chunk));
  await once(socket, 'connect');
  const closed = once(socket, 'close').then(([hadError]) => hadError as boolean);
  const ask = (path: string) => socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
  const replies = () => raw.match(/HTTP\/1\.1 \d+[^]*?\r\n\r\n/g) ?? [];
  return { ask, replies, closed };
}

test('a shutdown closes idle connections without losing a request, and accepts no new ones', async () => {
  const { child, port, ended, ready, output } = await start();
  await until('it is ready', ready);
  const connections = await Promise.all(Array.from({ length: 4 }, () => keptConnection(port)));
  const [busy, between, idle, silent] = connections as [Kept, Kept, Kept, Kept];
  for (const connection of [between, idle]) {
    connection.ask('/nothing');
    await until('it is answered', () => connection.replies().length === 1);
    expect(connection.replies()[0]).toContain('Connection: keep-alive');
  }
  busy.ask('/');
  await until('the request is under way', () => output().includes('working\n'));
  child.kill('SIGINT');
  await until('it is stopping', () => output().includes('"stopping"'));
  between.ask('/nothing');
  await expect(keptConnection(port)).rejects.toThrow('ECONNREFUSED');
  expect(await ready().catch(() => false)).toBe(false);
  await until('both are answered', () => busy.replies().length === 1 && between.replies().length === 2);
  for (const { replies } of [busy, between]) expect(replies().at(-1)).toContain('Connection: close');
  // Also that of a client that has connected and never asked.
  expect(await Promise.all([busy, between, idle, silent].map(({ closed }) => closed))).toEqual(
    connections.map(() => false),
  );
  expect(await ended).toBe(0);
});

test('a wrong setting is one line and exit code 1', async () => {
  const { ended, output } = await start({ LOG_LEVEL: 'loud' });
  expect(await ended).toBe(1);
  expect(output()).toBe('slow-service: LOG_LEVEL must be debug, info, warn or error, not "loud"\n');
});

test('a port in use is one line and exit code 1', async () => {
  const port = await freeRow(1);
  const other = createServer().listen(port, '127.0.0.1');
  await once(other, 'listening');
  const { ended, output } = await start({ PORT: String(port) });
  expect(await ended).toBe(1);
  expect(output()).toBe(`slow-service: PORT: cannot listen on 127.0.0.1:${port}: the port is taken\n`);
  other.close();
});
