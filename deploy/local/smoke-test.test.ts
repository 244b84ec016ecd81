import { expect, test } from '@jest/globals';
import { failure, startFakeServer } from '../../test/support/fake-server.ts';
import { smokeTest } from './smoke-test.ts';

test('is skipped if the demo user has a second factor', async () => {
  const server = await startFakeServer({ '/api/login': [failure(401, 'mfa_required')] });
  const client = { clientId: 'c', clientSecret: 's' };
  const settings = { database: 'postgres://127.0.0.1:1/x', gateway: server.origin, kafka: null, ...client };
  const lines: string[] = [];
  await smokeTest(settings, (line) => lines.push(line)).finally(() => server.close());
  expect(lines).toEqual([expect.stringMatching(/user@example\.com was changed .* is skipped/)]);
});
