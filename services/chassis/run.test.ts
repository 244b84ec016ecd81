import { expect, test } from '@jest/globals';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { freeRow } from '../../test/support/ports.ts';
import { until } from '../../test/support/wait.ts';
import { startServiceProcess } from './testing/service-process.ts';

async function startReady(...[env, options]: Parameters<typeof startServiceProcess>) {
  const service = await startServiceProcess(env, options);
  await until('it is ready', service.isReady);
  return service;
}

test('exports the thresholds of slow requests and queries, and warns that traces need the preload', async () => {
  const { child, internal, ended, output } = await startReady({
    SLOW_QUERY_MS: '150',
    SLOW_REQUEST_MS: '700',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
  });
  const metrics = await (await fetch(`${internal}/metrics`)).text();
  expect(metrics).toContain('slow_threshold_seconds{kind="query"} 0.15');
  expect(metrics).toContain('slow_threshold_seconds{kind="request"} 0.7');
  expect(output.stdout).toContain('traces are not recorded');
  child.kill('SIGINT');
  expect(await ended).toMatchObject({ code: 0 });
});

test('SIGTERM turns the process not ready and serves for another 2.5 s', async () => {
  const { child, port, ended, isReady, output } = await startReady();
  child.kill('SIGTERM');
  const [, since] = await until('it is stopping', () => /"time":"(.+?)".*"stopping"/.exec(output.stdout));
  expect(await isReady()).toBe(false);
  const late = await keptConnection(port);
  late.ask('/nothing');
  await until('the reply keeps the connection', () => late.replies()[0]?.includes('Connection: keep-alive'));
  expect(await ended).toMatchObject({ code: 0 });
  // The idle connection was closed a second after the 2.5 s.
  expect(Date.now() - Date.parse(since!)).toBeGreaterThan(3_400);
});

test('ends requests that exceed the grace period, with exit code 1', async () => {
  const { child, ended, output, ask } = await startReady({}, { args: ['200'] });
  const reply = ask({ 'X-Takes': '60000' }).then(
    () => 'answered',
    () => 'cut off',
  );
  await until('the request is in progress', () => output.stdout.includes('working\n'));
  child.kill('SIGINT');
  expect(await reply).toBe('cut off');
  expect(await ended).toMatchObject({ code: 1 });
  expect(output.stdout).toContain('stopped before all requests and shutdown steps had ended');
});

type Kept = Awaited<ReturnType<typeof keptConnection>>;

async function keptConnection(port: number) {
  const socket = connect(port, '127.0.0.1');
  let raw = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => (raw += chunk));
  await once(socket, 'connect');
  const closed = once(socket, 'close').then(([hadError]) => hadError as boolean);
  const ask = (path: string, headers = '') =>
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`);
  const replies = () => raw.match(/HTTP\/1\.1 \d+[^]*?\r\n\r\n/g) ?? [];
  return { ask, replies, closed };
}

test('a shutdown closes idle connections without losing a request, and accepts no new ones', async () => {
  const { child, origin, port, ended, isReady, output } = await startReady();
  const connections = await Promise.all(Array.from({ length: 4 }, () => keptConnection(port)));
  const [busy, between, idle, silent] = connections as [Kept, Kept, Kept, Kept];
  for (const connection of [between, idle]) {
    connection.ask('/nothing');
    await until('it is answered', () => connection.replies().length === 1);
    expect(connection.replies()[0]).toContain('Connection: keep-alive');
  }
  busy.ask('/.well-known/jwks.json', 'X-Takes: 1000\r\n');
  await until('the request is in progress', () => output.stdout.includes('working\n'));
  // As soon as the process says that it is stopping: after a second it closes idle connections.
  child.stdout.once('data', () => between.ask('/nothing'));
  child.kill('SIGINT');
  const attempt = () => fetch(origin).catch(({ cause }) => cause.code as string);
  await until('new connections are refused', async () => (await attempt()) === 'ECONNREFUSED');
  expect(await isReady().catch(() => false)).toBe(false);
  await until(
    'both requests have their replies',
    () => busy.replies().length === 1 && between.replies().length === 2,
  );
  for (const { replies } of [busy, between]) expect(replies().at(-1)).toContain('Connection: close');
  // Including the connection of a client that never sent a request.
  expect(await Promise.all([busy, between, idle, silent].map(({ closed }) => closed))).toEqual(
    connections.map(() => false),
  );
  expect(await ended).toMatchObject({ code: 0 });
  // onStop was called.
  expect(output.stdout).toContain('closed\n');
});

test('accepts more headers than the gateway, which adds some', async () => {
  const { child, ended, ask } = await startReady();
  expect(await ask({ 'X-Large': 'x'.repeat(16_384) })).toBe(200);
  child.kill('SIGINT');
  await ended;
});

test('a wrong setting is one line and exit code 1', async () => {
  const { ended } = await startServiceProcess({ LOG_LEVEL: 'loud' });
  const stderr = 'auth: LOG_LEVEL must be debug, info, warn or error, not "loud"\n';
  expect(await ended).toEqual({ code: 1, stdout: '', stderr });
});

test('a port in use is one line and exit code 1', async () => {
  const port = await freeRow(1);
  const other = createServer().listen(port, '127.0.0.1');
  await once(other, 'listening');
  const { ended } = await startServiceProcess({ PORT: String(port) });
  const stderr = `auth: PORT: cannot listen on 127.0.0.1:${port}: the port is in use\n`;
  expect(await ended).toMatchObject({ code: 1, stderr });
  other.close();
});
