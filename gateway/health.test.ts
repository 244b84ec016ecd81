import { afterEach, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { until } from '../test/support/wait.ts';
import { createHealth } from './health.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

/** A service whose internal listener answers with `listener`; its public address is 1000 below. */
async function start(listener: RequestListener): Promise<string> {
  for (;;) {
    const server = createServer(listener).listen(0, '127.0.0.1');
    await once(server, 'listening');
    servers.push(server);
    const { port } = server.address() as AddressInfo;
    if (port > 2_000) return `http://127.0.0.1:${port - 1000}`;
  }
}

test('each service is up or down by its readiness', async () => {
  const asked: string[] = [];
  const ready = await start((request, response) => {
    asked.push(request.url!);
    response.end('{"status":"degraded"}');
  });
  const unready = await start((_request, response) => response.writeHead(503).end());
  // Who does not answer within a second is down, and so may be a service of a busy machine.
  const stateOf = (services: Record<string, string>) =>
    until('the one that is ready is up', async () => {
      const health = await createHealth(services)();
      return health.services['ready'] === 'up' && health;
    });
  expect(await stateOf({ ready, unready, gone: 'http://127.0.0.1:1' })).toEqual({
    status: 'degraded',
    services: { ready: 'up', unready: 'down', gone: 'down' },
  });
  expect(await stateOf({ ready })).toEqual({ status: 'ok', services: { ready: 'up' } });
  expect(new Set(asked)).toEqual(new Set(['/health/ready']));
});

test('one that hangs is down after a second, and nobody asks it twice meanwhile', async () => {
  let asked = 0;
  const hanging = await start(() => (asked += 1));
  const health = createHealth({ hanging });
  const startedAt = performance.now();
  const answers = await Promise.all(Array.from({ length: 50 }, () => health()));
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  expect(answers.every(({ services }) => services['hanging'] === 'down')).toBe(true);
  expect(asked).toBe(1);
});
