import { beforeEach, expect, test } from '@jest/globals';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { createLogger, fetchWithToken, runInContext } from '@content-platform/chassis';
import { startHttpServer } from '../../../test/support/http-server.ts';
import { useStarted } from '../../../test/support/use-started.ts';
import { until, within } from '../../../test/support/wait.ts';
import { createPushDevices } from './push-devices.ts';

/** A stub of the devices service: the requests that it got, and its reply. */
let asked: object[] = [];
let answer: (response: ServerResponse) => void;
let log: string[];
const done = (response: ServerResponse) => void response.writeHead(204).end();

async function take(request: IncomingMessage, response: ServerResponse) {
  const { method, url, headers } = request;
  asked.push({
    method,
    url,
    requestId: headers['x-request-id'],
    authorization: headers.authorization,
    body: await json(request),
  });
  answer(response);
}
const devices = useStarted(() => startHttpServer((request, response) => void take(request, response)));
beforeEach(() => {
  [asked, log, answer] = [[], [], done];
});

const token = 'a-push-token:that-nobody-may-see';
function start(at: string | undefined) {
  const pushDevices = createPushDevices(
    at,
    fetchWithToken(() => 'of-auth'),
    createLogger('auth', 'debug', { write: (line) => void log.push(line) }),
  );
  const context = { requestId: 'the-logout', route: '/api/logout', database: { calls: 0, ms: 0 } };
  return () => runInContext(context, () => pushDevices.unregister(7, token));
}
const logged = () => log.map((line) => JSON.parse(line) as Record<string, unknown>);
const staying = () =>
  logged().filter(({ message }) => message === 'push token not deleted at logout; it is deleted later');

test('sends the user and the token to the devices service, and logs nothing', async () => {
  await start(devices.origin)();
  expect(asked).toEqual([
    {
      method: 'POST',
      url: '/unregister',
      requestId: 'the-logout',
      authorization: 'Bearer of-auth',
      body: { user_id: 7, token },
    },
  ]);
  expect(log).toEqual([]);
});

test('sends and logs nothing without a devices service', async () => {
  await start(undefined)();
  expect([asked, log]).toEqual([[], []]);
});

test.each<[string, (response: ServerResponse) => void]>([
  ['fails', (response) => void response.writeHead(503).end()],
  ['answers something else', (response) => void response.writeHead(200).end('<html>')],
  ['sends elsewhere', (response) => void response.writeHead(307, { Location: '/elsewhere' }).end()],
  ['breaks off', (response) => void response.destroy()],
])('if the service %s, the log has the reason and the user, and no push token', async (_, how) => {
  answer = how;
  await start(devices.origin)();
  expect(asked).toHaveLength(1);
  expect(logged()).toMatchObject([
    { level: 'warn', request_id: 'the-logout', error: expect.anything() },
    { level: 'warn', request_id: 'the-logout', user_id: 7 },
  ]);
  expect(staying()).toHaveLength(1);
  expect(log.join()).not.toContain(token);
});

test('if the service hangs, one logout waits a second, the next ones do not, and later ones ask again', async () => {
  answer = () => undefined;
  const unregister = start(devices.origin);
  await within('the logout', unregister(), 10_000);
  expect(asked).toHaveLength(1);
  // A skipped request resolves in the same tick.
  await Promise.all(Array.from({ length: 50 }, unregister));
  expect(asked).toHaveLength(1);
  expect(staying()).toHaveLength(51);

  answer = done;
  await until('it is asked again', async () => {
    const before = staying().length;
    await unregister();
    return staying().length === before;
  });
  expect(asked).toHaveLength(2);
  await Promise.all([unregister(), unregister()]);
  expect(asked).toHaveLength(4);
});
