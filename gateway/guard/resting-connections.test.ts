import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../test/support/wait.ts';
import { createRestingConnections } from './load-shedding.ts';

let isCalm: boolean;
let server: Server;
let client: Socket;
/** For each request, whether it was sent during the rest. */
let early: boolean[];
let connections: ReturnType<typeof createRestingConnections>;

const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

beforeEach(async () => {
  isCalm = false;
  early = [];
  connections = createRestingConnections(() => isCalm);
  // A server that refuses every request.
  server = createServer((incoming, response) => {
    early.push(connections.isEarly(incoming.socket));
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

test('a request sent during the rest is read after it, and counts as early', async () => {
  client.write(request);
  await until('it is read', () => early.length === 2);
  expect(early).toEqual([false, true]);
});

test('a connection is read again as soon as the gateway is calm', async () => {
  client.write(request);
  await until('it rests again', () => early.length === 2);
  client.write(request);
  isCalm = true;
  await until('it is read', () => early.length === 3);
});

test('a request sent after the rest is not early', async () => {
  isCalm = true;
  // Longer than the pause between two checks.
  await sleep(100);
  client.write(request);
  await until('it is read', () => early.length === 2);
  expect(early).toEqual([false, false]);
});

test('pipelined requests get all their replies', async () => {
  client.write(request.repeat(5));
  await until('all are read', () => early.length === 6);
});
