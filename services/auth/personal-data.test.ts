import { afterEach, expect, test } from '@jest/globals';
import type { ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { fetchWithToken } from '@content-platform/chassis';
import { type HttpServer, startHttpServer } from '../../test/support/http-server.ts';
import { until } from '../../test/support/wait.ts';
import { createPersonalData } from './personal-data.ts';

const user = { id: 7 };
const noSessions = async function* () {};
const never = new AbortController().signal;
const servers: HttpServer[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** Starts the export of two services: one that works, and one that sends the reply of `answer`. */
async function start(answer: (response: ServerResponse, good: string) => void, limits = {}) {
  const asked: unknown[] = [];
  const [good, other] = [
    await startHttpServer(({ url, headers }, response) => {
      asked.push([url, headers.authorization]);
      response.end('[{"id":1}]');
    }),
    await startHttpServer((_request, response) => answer(response, servers[0]!.origin)),
  ];
  servers.push(good, other);
  const fetchAsService = fetchWithToken(() => 'of-auth');
  const lists = { devices: good.origin, letters: other.origin };
  const usual = { waitMs: 100, beginMs: 60_000, exportMs: 60_000, ...limits };
  const { export: read } = createPersonalData(lists, fetchAsService, usual);
  return { asked, read: (signal = never, id = user.id) => read({ id }, noSessions(), signal) };
}
const unavailable = { error: 'service_unavailable', status: 503 };

test('joins the lists of the services, which it asks as auth', async () => {
  const { asked, read } = await start((response) => response.end('[]'));
  expect(await text(await read())).toBe('{"user":{"id":7},"sessions":[],"devices":[{"id":1}],"letters":[]}');
  expect(asked).toEqual([['/export?user_id=7', 'Bearer of-auth']]);
});

test.each<[string, (response: ServerResponse, good: string) => void, object]>([
  ['closes the connection', (response) => response.destroy(), {}],
  ['returns 503', (response) => response.writeHead(503).end(), {}],
  ['redirects', (response, good) => response.writeHead(302, { Location: good }).end(), {}],
  ['does not answer', () => {}, { beginMs: 200 }],
])('throws 503 if a service %s', async (_, answer, limits) => {
  await expect((await start(answer, limits)).read()).rejects.toMatchObject(unavailable);
});

test('throws 503 without the URL of a service', async () => {
  const { export: read } = createPersonalData({ devices: undefined }, fetchWithToken(String));
  await expect(read(user, noSessions(), never)).rejects.toMatchObject(unavailable);
});

test.each<[string, (response: ServerResponse) => void, object]>([
  ['fails', (response) => response.write('[{"id":', () => response.destroy()), {}],
  ['sends nothing more', (response) => void response.write('['), { exportMs: 2_000 }],
])('fails the stream if a service %s after its begin', async (_, answer, limits) => {
  const { read } = await start(answer, limits);
  await expect(text(await read())).rejects.toThrow();
});

test('limits the exports in progress, and frees the slot of a client that disconnects', async () => {
  let closed = 0;
  const { read } = await start((response) => {
    response.write('[');
    response.once('close', () => (closed += 1));
  });
  const clients = Array.from({ length: 4 }, () => new AbortController());
  for (const [id, client] of clients.entries()) (await read(client.signal, id)).resume();
  await expect(read()).rejects.toMatchObject(unavailable);
  for (const client of clients) client.abort();
  await until('the services are told', () => closed === 4);
  (await read()).destroy();
});

test('a user who reads slowly does not keep other users from exporting', async () => {
  const { read } = await start((response) => void response.write('['));
  const slow = await read();
  await expect(read()).rejects.toMatchObject({ error: 'rate_limited', headers: { 'Retry-After': '5' } });
  for (const id of [1, 2, 3]) await read(never, id);
  slow.destroy();
  await until('the slot is free', () => read().catch(() => undefined));
});
