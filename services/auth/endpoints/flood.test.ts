import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { changePassword, createUser, login, token } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { startAuth, type TestAuth } from '../testing.ts';

const password = 'wooden lantern drifts past nine';
let auth: TestAuth;
let admin: string;
let person: string;
beforeAll(async () => {
  auth = await startAuth();
  await auth.addClient('console', 'console-secret', 'users:admin');
  const body = { grant_type: 'client_credentials', client_id: 'console', client_secret: 'console-secret' };
  admin = (await call(auth.origin, token, { body })).body!.access_token;
  const ann = { email: 'ann@b.de', password };
  await auth.addUser(ann.email, ann.password);
  person = (await call(auth.origin, login, { body: ann })).body!.token;
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

const addUser = () =>
  call(auth.origin, createUser, {
    body: { email: `${(accounts += 1)}@b.de`, name: 'New', password },
    token: admin,
  });

/** Too easy: nothing is changed. */
const change = () =>
  call(auth.origin, changePassword, {
    body: { current_password: password, new_password: 'a'.repeat(20) },
    token: person,
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
  ['new users', 'find_user_by_email', addUser],
  ['changes of a password', 'find_user_by_email', change],
])('a flood of %s: who is refused has cost no query', async (_, operation, ask) => {
  const before = await queries(operation);
  // Not those whom a busy database lets wait too long: they were let try.
  const notLetTry = ['There is too much to do at the moment.', 'Too many failed attempts'];
  const isRefused = (message = '') => notLetTry.some((beginning) => message.startsWith(beginning));
  let [asked, refused] = [0, 0];
  // On a busy machine the flood itself may come slowly.
  while (refused === 0 && asked < 1_000) {
    const answers = await Promise.all(Array.from({ length: 200 }, () => ask()));
    asked += answers.length;
    refused += answers.filter(({ error }) => isRefused(error?.message)).length;
  }
  expect(refused).toBeGreaterThan(0);
  expect((await queries(operation)) - before).toBe(asked - refused);
});
