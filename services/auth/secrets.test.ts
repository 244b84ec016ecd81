import { afterAll, beforeAll, expect, test } from '@jest/globals';
import bcrypt from '@node-rs/bcrypt';
import { startAuth, type TestAuth } from './testing/start-auth.ts';

const password = 'Passw0rd-of-ann';
const mistyped = 'Passw0rd-of-amn';
const secret = 'Secr3t-of-cms';
let auth: TestAuth;

beforeAll(async () => {
  auth = await startAuth();
  await auth.addUser('ann@example.com', password);
  await auth.addClient('cms', secret);
  const passwordHash = await bcrypt.hash(password, { cost: 4 });
  await auth.stores.users.create({ email: 'b@x.de', name: 'B', passwordHash, roles: ['user'] });
});
afterAll(() => auth.stop());

async function send(path: string, body: string, headers: Record<string, string> = {}) {
  const type = { 'Content-Type': 'application/json' };
  return fetch(auth.origin + path, { method: 'POST', body, headers: { ...type, ...headers } });
}

test('passwords, secrets, hashes and tokens do not reach the log, whatever goes wrong', async () => {
  const grant_type = 'client_credentials';
  const tokens = [
    (await auth.logIn('ann@example.com', password)).body!.token,
    (await auth.logIn('b@x.de', password)).body!.token,
    (await auth.askAsClient('cms', secret)).body!.access_token,
  ];
  const basic = Buffer.from(`cms:${secret}x`).toString('base64');
  const attempts = () => [
    send('/api/login', JSON.stringify({ email: 'ann@example.com', password: mistyped })),
    // The password in the field for the email address.
    send('/api/login', JSON.stringify({ email: password, password: mistyped })),
    send('/api/login', JSON.stringify({ email: 'ann@example.com', password, more: secret })),
    send('/api/login', `{"email": "ann@example.com", "password": "${password}`),
    send('/api/token', JSON.stringify({ grant_type }), { Authorization: `Basic ${basic}` }),
    send('/api/token', JSON.stringify({ grant_type, client_id: secret, client_secret: secret })),
    fetch(`${auth.origin}/api/me`, { headers: { Authorization: `Bearer ${tokens[0]}x` } }),
    fetch(`${auth.origin}/api/${tokens[0]}`),
  ];
  const statuses = (await Promise.all(attempts())).map(({ status }) => status);
  expect(statuses).toEqual([401, 401, 422, 400, 401, 401, 401, 404]);

  // Makes a statement fail with an error that quotes the row.
  await auth.sql('ALTER TABLE auth.user RENAME COLUMN email TO address');
  expect((await Promise.all(attempts())).map(({ status }) => status)).toContain(500);

  const log = auth.log.join('');
  expect(log).toContain('"level":"error"');
  expect(log).toContain('a login failed');
  for (const hidden of [password, mistyped, secret, basic, '$argon2', '$2b$', 'eyJ']) {
    expect(log).not.toContain(hidden);
  }
});
