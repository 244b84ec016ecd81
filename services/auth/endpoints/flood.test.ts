import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { login, token } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { startAuth, type TestAuth } from '../testing.ts';

let auth: TestAuth;
beforeAll(async () => {
  auth = await startAuth();
});
afterAll(() => auth.stop());

/** Each at another account or client, or guessing would be limited before there is a flood. */
let accounts = 0;
const logIn = () =>
  call(auth.origin, login, { body: { email: `${(accounts += 1)}@b.de`, password: 'guess' } });
const askToken = () =>
  call(auth.origin, token, {
    body: {
      grant_type: 'client_credentials',
      client_id: `cms-${(accounts += 1)}`,
      client_secret: 'guess',
    },
  });

async function queries(operation: string) {
  const { values } = await auth.metrics.queryDuration.get();
  const count = values.find(
    ({ labels, metricName }) => labels['operation'] === operation && metricName?.endsWith('_count'),
  );
  return count?.value ?? 0;
}

test.each([
  ['logins', 'find_user_by_email', logIn],
  ['machine clients', 'find_client', askToken],
])('a flood of %s: who is refused has cost no query', async (_, operation, ask) => {
  const answers = await Promise.all(Array.from({ length: 200 }, () => ask()));
  const statuses = answers.map(({ status }) => status);
  const refused = statuses.filter((status) => status === 503).length;
  expect(refused).toBeGreaterThan(0);
  expect(await queries(operation)).toBe(200 - refused);
});
