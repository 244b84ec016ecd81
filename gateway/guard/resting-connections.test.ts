import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../test/support/wait.ts';
import { createRestingConnections } from './load-shedding.ts';

/** The number of requests for which the queue has room. */
let room: number;
let server: Server;
let client: Socket;
/** For each request, whether it has waited for a whole rest, and the port of its client. */
let late: boolean[];
let ports: number[];
let connections: ReturnType<typeof createRestingConnections>;

const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

beforeEach(async () => {
  room = 0;
  late = [];
  ports = [];
  connections = createRestingConnections(() => room);
  // A server that refuses every request.
  server = createServer((incoming, response) => {
    late.push(connections.isLate(incoming.socket));
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

test('a request sent during the rest is read after it, and is late', async () => {
  client.write(request);
  await until('it is read', () => late.length === 2);
  expect(late).toEqual([false, true]);
});

test('a connection is read again as soon as the gateway is calm', async () => {
  client.write(request);
  await until('it rests again', () => late.length === 2);
  client.write(request);
  room = 1;
  await until('it is read before its rest is over', () => late[2] === false);
});

test('with little room, the connection that was refused last is read first', async () => {
  const other = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.write(request);
  await until('the first rests again', () => late.length === 2);
  other.write(request);
  await once(other, 'data');
  other.write(request);
  await until('both rest', () => late.length === 4);
  for (const socket of [client, other]) socket.write(request);
  room = 1;
  await until('both are read', () => ports.length === 6);
  expect(ports.slice(4)).toEqual([other.localPort, client.localPort]);
  other.destroy();
});

test('a request sent after the rest is not late', async () => {
  room = 1;
  // Longer than the pause between two checks.
  await sleep(100);
  client.write(request);
  await until('it is read', () => late.length === 2);
  expect(late).toEqual([false, false]);
});
