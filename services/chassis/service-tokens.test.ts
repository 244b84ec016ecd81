import { expect, jest, test } from '@jest/globals';
import { startHttpServer } from '../../test/support/http-server.ts';
import { createServiceFetch } from './service-tokens.ts';

test('a service keeps its token while auth is unavailable, and gets another when the key was withdrawn', async () => {
  const tokens: string[] = [];
  let [available, accepted] = [true, 'first'];
  const server = await startHttpServer(({ url, headers }, response) => {
    if (url === '/service-token') {
      if (!available) return void response.writeHead(503).end();
      tokens.push(accepted);
      return void response.end(JSON.stringify({ token: accepted, expires_in: 900 }));
    }
    response.writeHead(headers.authorization === `Bearer ${accepted}` ? 204 : 401).end();
  });
  const fetchAsService = createServiceFetch(server.origin, 'devices', 'a-secret');
  const status = async () => (await fetchAsService(`${server.origin}/any`, {})).status;
  expect(await status()).toBe(204);
  const now = performance.now.bind(performance);
  const clock = jest.spyOn(performance, 'now');
  available = false;
  clock.mockImplementation(() => now() + 600_000);
  expect(await status()).toBe(204);
  clock.mockImplementation(() => now() + 890_000);
  await expect(status()).rejects.toThrow('/service-token answered 503');
  [available, accepted] = [true, 'second'];
  expect(await status()).toBe(204);
  accepted = 'third';
  expect(await status()).toBe(204);
  expect(tokens).toEqual(['first', 'second', 'third']);
  clock.mockRestore();
  server.close();
});
