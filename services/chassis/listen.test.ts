import { afterEach, expect, test } from '@jest/globals';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { freePort } from '../../deploy/local/ports.ts';
import { until } from '../../test/support/wait.ts';
import { listen } from './listen.ts';

const clients: Socket[] = [];
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  for (const close of closers.splice(0)) await close();
});

async function start() {
  const server = createServer((_request, response) => response.end('here'));
  const port = await freePort();
  closers.push(await listen(server, port, '127.0.0.1'));
  return { server, port };
}

function spin(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

// On other systems there is one listening socket.
const onLinux = process.platform === 'linux' ? test : test.skip;

onLinux('accepts several connections in each long turn of the event loop', async () => {
  const { server, port } = await start();
  let accepted = 0;
  server.on('connection', () => (accepted += 1));
  for (let count = 0; count < 200; count += 1) clients.push(connect(port, '127.0.0.1'));
  let turns = 0;
  while (accepted < clients.length && turns < 150) {
    spin(10);
    await turn();
    turns += 1;
  }
  expect(accepted).toBe(200);
});

test('refuses a port in use, also by the same process', async () => {
  const { port } = await start();
  await expect(listen(createServer(), port, '127.0.0.1')).rejects.toThrow('the port is in use');
});

test('names HOST if the machine does not have the address', async () => {
  // An address for documents (RFC 5737).
  await expect(listen(createServer(), await freePort(), '192.0.2.1')).rejects.toThrow(/^HOST: cannot listen/);
});

test('after close() accepts no connections and waits for the open ones', async () => {
  const { port } = await start();
  for (let count = 0; count < 40; count += 1) {
    const client = connect(port, '127.0.0.1').setEncoding('latin1');
    clients.push(client);
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  }
  await until('all are answered', () => clients.every(({ bytesRead }) => bytesRead > 0));
  let isClosed = false;
  const closed = closers.pop()!().then(() => (isClosed = true));
  await until('no connection is accepted', () =>
    fetch(`http://127.0.0.1:${port}/`).then(
      () => false,
      () => true,
    ),
  );
  expect(isClosed).toBe(false);
  for (const client of clients) client.destroy();
  await closed;
});
