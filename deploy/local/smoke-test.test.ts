import { expect, test } from '@jest/globals';
import { startHttpServer } from '../../test/support/http-server.ts';
import { smokeTest } from './smoke-test.ts';

test('is skipped if the demo user has a second factor', async () => {
  const body = { error: 'mfa_required', code: 401, message: 'M', request_id: 'R' };
  const server = await startHttpServer((_, response) => {
    response.writeHead(401, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
  });
  const client = { clientId: 'c', clientSecret: 's' };
  const settings = { database: 'postgres://127.0.0.1:1/x', gateway: server.origin, kafka: null, ...client };
  const lines: string[] = [];
  await smokeTest(settings, (line) => lines.push(line)).finally(() => server.close());
  expect(lines).toEqual([expect.stringMatching(/user@example\.com was changed .* is skipped/)]);
});
