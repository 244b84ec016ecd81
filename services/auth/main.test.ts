import { expect, test } from '@jest/globals';
import { hash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { changePassword, jwks, listSessions, login, me } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { newAddress } from '../../test/support/accounts.ts';
import { startService } from '../../test/support/programs.ts';
import { startRedis } from '../../test/support/redis-server.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { createTestDatabase } from '../../test/support/test-database.ts';
import { useStarted } from '../../test/support/use-started.ts';
import { until } from '../../test/support/wait.ts';
import { ensureUser, withAccounts } from './accounts.ts';
import { loadOrCreateKeys } from './keys/key-rotation.ts';
import { keySecret } from './testing/start-auth.ts';

const own = useStarted(createTestDatabase);

function start(env: Record<string, string> = {}) {
  const settings = { DATABASE_URL: own.url, AUTH_KEY_SECRET: keySecret, ...env };
  return startService('services/auth/main.ts', { env: settings });
}

test('two processes that start on an empty database sign with one key, and stop on SIGTERM', async () => {
  const both = await Promise.all([1, 2].map(() => start({ MFA_REQUIRED_ROLES: 'admin,user' })));
  for (const { isReady } of both) await until('it is ready', isReady);
  const sets = await Promise.all(both.map(({ origin }) => call(origin, jwks)));
  expect(sets[0]!.body!.keys).toHaveLength(1);
  expect(sets[1]!.body).toEqual(sets[0]!.body);

  const person = { email: 'ann@example.com', password: 'a-password-to-keep' };
  const ann = { ...person, name: 'Ann', roles: ['user' as const] };
  await withAccounts(own.url, (accounts) => ensureUser(accounts, ann));
  const { token } = (await call(both[0]!.origin, login, { body: person })).body!;
  expect((await call(both[1]!.origin, me, { token })).status).toBe(200);
  const { error } = await call(both[1]!.origin, listSessions, { token });
  expect(error?.error).toBe('mfa_enrollment_required');

  const isLinked = () => both.some(({ output }) => /"audit":.*"event":"login"/.test(output.stdout));
  await until('the login is in the hash chain', isLinked);

  for (const { child, ended } of both) {
    child.kill('SIGTERM');
    const { stdout, ...others } = await ended;
    expect(others).toEqual({ code: 0, stderr: '' });
    for (const secret of [person.password, token, keySecret]) expect(stdout).not.toContain(secret);
  }
});

const redis = useStarted(startRedis);
test('two processes count guesses together', async () => {
  const both = await Promise.all([1, 2].map(() => start({ REDIS_URL: redis.url })));
  // A process that is ready without Redis counts alone.
  for (const { internal } of both) {
    const health = async () => (await fetch(`${internal}/health/ready`)).text();
    await until('it is ready and has Redis', async () => (await health()).includes('"status":"ok"'));
  }
  // Ten are allowed, and each process alone gets no more. One that waits long for a busy Redis counts alone for a second.
  await until('a guess is refused', async () => {
    const address = newAddress();
    const body = { email: `guess-${address}@example.com`, password: 'a guess' };
    const options = { body, headers: { 'X-Forwarded-For': address } };
    const guesses = Array.from({ length: 20 }, (_, n) => call(both[n % 2]!.origin, login, options));
    return (await Promise.all(guesses)).some(({ status }) => status === 429);
  });
});

test('exits with 1 and one line for another AUTH_KEY_SECRET', async () => {
  await withAccounts(own.url, (accounts) => loadOrCreateKeys(accounts, keySecret));
  const { ended } = await start({ AUTH_KEY_SECRET: keySecret.toUpperCase() });
  const { code, stderr } = await ended;
  expect(code).toBe(1);
  expect(stderr).toMatch(/^auth: AUTH_KEY_SECRET does not decrypt the signing key in the database; .+\n$/);
});

test('exits with 1 and one line, which hides the secret, for a short secret', async () => {
  const { ended } = await start({ AUTH_KEY_SECRET: 'too short' });
  const { code, stderr } = await ended;
  expect(code).toBe(1);
  expect(stderr).toMatch(/^auth: AUTH_KEY_SECRET must be a secret of 32 or more characters, .+\n$/);
  expect(stderr).not.toContain('too short');
});

test('refuses the passwords of PASSWORD_BLOCKLIST_FILE', async () => {
  const PASSWORD_BLOCKLIST_FILE = join(temporaryFolder(), 'list');
  const listed = 'eleven quiet herons read maps';
  writeFileSync(PASSWORD_BLOCKLIST_FILE, `${hash('sha1', listed).toUpperCase()}:12\n`);
  const { origin, isReady } = await start({ PASSWORD_BLOCKLIST_FILE });
  await until('it is ready', isReady);
  const person = { email: 'bob@example.com', password: 'a-password-to-keep' };
  const bob = { ...person, name: 'Bob', roles: ['user' as const] };
  await withAccounts(own.url, (accounts) => ensureUser(accounts, bob));
  const { token } = (await call(origin, login, { body: person })).body!;
  const body = { current_password: person.password, new_password: listed };
  const { status, error } = await call(origin, changePassword, { body, token });
  expect([status, error?.details?.[0]?.message]).toEqual([422, expect.stringMatching(/common or leaked/)]);
});
