import { expect, test } from '@jest/globals';
import { startHttpServer } from '../../test/support/http-server.ts';
import { startService } from '../../test/support/programs.ts';
import { until } from '../../test/support/wait.ts';

/** Longer than the 10 s that other processes wait for requests in progress. */
const replyMs = 11_000;

test('waits during shutdown for a reply that takes as long as an upload', async () => {
  const asked = Promise.withResolvers<void>();
  const upstream = await startHttpServer((request, response) => {
    if (request.url !== '/.well-known/jwks.json') return void response.end();
    if (request.headers['x-forwarded-for']) asked.resolve();
    setTimeout(() => response.end('{"keys":[]}'), replyMs);
  });
  const { child, origin, ended } = await startService('gateway/main.ts', {
    env: { AUTH_URL: upstream.origin },
  });
  try {
    await until('it listens', async () => (await fetch(`${origin}/health`)).status > 0);
    const reply = fetch(`${origin}/.well-known/jwks.json`);
    await asked.promise;
    child.kill('SIGINT');
    expect((await reply).status).toBe(200);
    expect(await ended).toMatchObject({ code: 0 });
  } finally {
    child.kill('SIGKILL');
    upstream.close();
  }
});
