import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../test/support/wait.ts';
import { createPausedConnections } from './load-shedding.ts';

/** The number of requests for which the queue has room. */
let room: number;
let server: Server;
let client: Socket;
/** For each request, isLate() (it waited unread until the end of a pause), and the port of its client. */
let lateness: boolean[];
let ports: number[];
let connections: ReturnType<typeof createPausedConnections>;

const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

beforeEach(async () => {
  room = 0;
  lateness = [];
  ports = [];
  connections = createPausedConnections(() => room);
  // A server that refuses every request.
  server = createServer((incoming, response) => {
    lateness.push(connections.isLate(incoming.socket));
    ports.push(incoming.socket.remotePort!);
    connections.add(incoming.socket, response);
    response.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.write(request);
  await once(client, 'data');
});
afterEach(() => {
  connections.stop();
  client.destroy();
  server.close();
});

test('reads a request that was sent during a pause after the pause, and marks it as late', async () => {
  client.write(request);
  await until('it is read', () => lateness.length === 2);
  expect(lateness).toEqual([false, true]);
});

test('reads a connection before the end of its pause if the queue has room', async () => {
  client.write(request);
  await until('it is paused again', () => lateness.length === 2);
  client.write(request);
  room = 1;
  await until('it is read before its pause is over', () => lateness[2] === false);
});

test('with little room, the connection that was refused last is read first', async () => {
  const other = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.write(request);
  await until('the first is paused again', () => lateness.length === 2);
  other.write(request);
  await once(other, 'data');
  other.write(request);
  await until('both are paused', () => lateness.length === 4);
  for (const socket of [client, other]) socket.write(request);
  room = 1;
  await until('both are read', () => ports.length === 6);
  expect(ports.slice(4)).toEqual([other.localPort, client.localPort]);
  other.destroy();
});

test('does not mark a request as late that was sent after the pause', async () => {
  room = 1;
  // Longer than the pause between two checks.
  await sleep(100);
  client.write(request);
  await until('it is read', () => lateness.length === 2);
  expect(lateness).toEqual([false, false]);
});
