import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startAuth, type TestAuth } from '../testing.ts';

let auth: TestAuth;

beforeAll(async () => void (auth = await startAuth()));
afterAll(() => auth.stop());

const young = Buffer.alloc(32, 1);
const old = Buffer.alloc(32, 2);
const run = (text: string, values: unknown[] = []) => auth.database.query('run', text, values);

test('logins that were never finished are deleted after an hour', async () => {
  const logins = auth.stores.identityLogins;
  const login = { nonce: '', codeVerifier: '', returnTo: '', clientState: '', codeChallenge: '' };
  for (const hash of [young, old]) await logins.begin(hash, { ...login, browserHash: hash });
  const age = `UPDATE auth.identity_login SET created_at = now() - make_interval(mins => $2) WHERE state_hash = $1`;
  await run(age, [young, 59]);
  await run(age, [old, 61]);
  await logins.deleteExpired();
  expect([(await logins.take(young))?.expired, await logins.take(old)]).toEqual([true, undefined]);
});

test('codes are deleted after a day', async () => {
  await auth.addUser('ann@example.com', 'a long password of theirs');
  const codes = auth.stores.identityCodes;
  const { rows } = await auth.database.query<{ id: string }>('read', 'SELECT id FROM auth.user');
  const code = { userId: Number(rows[0]!.id), codeChallenge: '', issuer: '', idToken: '', suborgs: [] };
  for (const hash of [young, old]) await codes.add(hash, code);
  const age = `UPDATE auth.identity_code SET created_at = now() - make_interval(hours => $2) WHERE hash = $1`;
  await run(age, [young, 23]);
  await run(age, [old, 25]);
  await codes.deleteExpired();
  expect([(await codes.present(young))?.state, await codes.present(old)]).toEqual(['expired', undefined]);
});
