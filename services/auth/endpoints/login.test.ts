import { afterAll, beforeAll, expect, test } from '@jest/globals';
import bcrypt from '@node-rs/bcrypt';
import { login, me, scopes } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { until } from '../../../test/support/wait.ts';
import { decode, issuer, startAuth, type TestAuth } from '../testing.ts';

const password = 'a-password-to-keep';
let auth: TestAuth;

beforeAll(async () => {
  auth = await startAuth();
  await auth.addUser('ann@example.com', password, 'sre');
  await auth.addUser('root@example.com', password, 'admin');
  await auth.addUser('gone@example.com', password);
  await auth.database.query('disable', `UPDATE auth.user SET disabled = true WHERE email LIKE 'gone%'`);
  for (const [email, version] of Object.entries({ 'y@x.de': '2y', 'a@x.de': '2a', 'b@x.de': '2b' })) {
    const passwordHash = await bcrypt.hash(password, { cost: 10, version: version as '2y' });
    await auth.accounts.users.create({ email, name: 'B', passwordHash, roles: ['user'] });
  }
});
afterAll(() => auth.stop());

const logIn = (email: string, given = password) =>
  call(auth.origin, login, { body: { email, password: given } });

async function succeed(email: string) {
  const answer = await logIn(email);
  if (answer.error) throw new Error(answer.error.message);
  return answer.body;
}

/** A refusal as the client sees it, without what differs in every reply. */
async function refusal(email: string, given = password) {
  const response = await fetch(`${auth.origin}/api/login`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ email, password: given }),
  });
  const body = (await response.text()).replace(/"request_id":"[^"]+"/, '"request_id":""');
  const headers = Object.fromEntries(response.headers);
  // The number of database calls stays, their time goes.
  headers['server-timing'] = headers['server-timing']!.replace(/dur=[\d.]+/, '');
  delete headers['date'];
  delete headers['x-request-id'];
  return { answer: { status: response.status, body, headers } };
}

test('a person logs in: who they are, and a token with exactly these claims', async () => {
  const { token, token_type, expires_in, user } = await succeed('ann@example.com');
  expect({ token_type, expires_in }).toEqual({ token_type: 'Bearer', expires_in: 900 });
  expect(user).toMatchObject({ email: 'ann@example.com', name: 'A Person' });
  const { header, claims } = decode(token);
  expect(header).toEqual({ alg: 'RS256', typ: 'at+jwt', kid: auth.keys.current.kid });
  const uuid = expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown;
  const { iat } = claims as { iat: number };
  expect(Math.abs(iat - Date.now() / 1000)).toBeLessThan(60);
  expect(claims).toEqual({
    iss: issuer,
    aud: 'content-platform',
    sub: String(user.id),
    jti: uuid,
    sid: expect.stringMatching(/^[1-9]\d*$/) as unknown,
    iat,
    exp: iat + 900,
    scope: 'jobs:manage pulse:view',
  });
});

test('every login is a session of its own', async () => {
  const tokens = [await succeed('ann@example.com'), await succeed('ann@example.com')];
  const [first, second] = tokens.map(({ token }) => decode(token).claims);
  expect(first!['sid']).not.toBe(second!['sid']);
  expect(first!['jti']).not.toBe(second!['jti']);
});

test('the address is compared without regard to case', async () => {
  expect((await succeed('Ann@Example.COM')).user.email).toBe('ann@example.com');
});

test('each kind of failure gets the same reply after the same time', async () => {
  const equalized = auth.equalized();
  const refusals = await Promise.all([
    refusal('ann@example.com', 'wrong'),
    refusal('nobody@example.com'),
    refusal('y@x.de', 'wrong'),
    refusal('gone@example.com'),
    refusal('gone@example.com', 'wrong'),
  ]);
  const [first] = refusals;
  expect(first!.answer.status).toBe(401);
  expect(first!.answer.body).toContain('"error":"invalid_credentials"');
  for (const { answer } of refusals) expect(answer).toEqual(first!.answer);
  expect(auth.equalized()).toBe(equalized + refusals.length);
});

test.each(['y@x.de', 'a@x.de', 'b@x.de'])(
  'the bcrypt hash of %s becomes argon2id at login',
  async (email) => {
    await succeed(email);
    const renewed = await auth.accounts.users.findByEmail(email);
    expect(renewed!.passwordHash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    await succeed(email);
    expect((await auth.accounts.users.findByEmail(email))!.passwordHash).toBe(renewed!.passwordHash);
    expect((await refusal(email, 'wrong')).answer.status).toBe(401);
  },
);

test('a login gets in though another one renews the hash while it is under way', async () => {
  const { users, passwords } = auth.accounts;
  const passwordHash = await bcrypt.hash(password, { cost: 4 });
  const { id } = (await users.create({ email: 'd@x.de', name: 'D', passwordHash, roles: ['user'] }))!;
  const renewed = await passwords.hash(password);
  const { loggingIn } = await auth.database.transaction(async (query) => {
    await query('renew', 'UPDATE auth.user SET password_hash = $2 WHERE id = $1', [id, renewed]);
    const loggingIn = logIn('d@x.de');
    await until('it waits for the user', async () => {
      const text = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      return (await auth.database.query('waiting', text)).rowCount === 1;
    });
    return { loggingIn };
  });
  expect((await loggingIn).status).toBe(200);
});

test('a failed login leaves the bcrypt hash alone', async () => {
  const passwordHash = await bcrypt.hash(password, { cost: 4 });
  await auth.accounts.users.create({ email: 'c@x.de', name: 'C', passwordHash, roles: ['user'] });
  await refusal('c@x.de', 'wrong');
  expect((await auth.accounts.users.findByEmail('c@x.de'))!.passwordHash).toBe(passwordHash);
});

test('a hash is renewed only while it is the one that was checked', async () => {
  const { users } = auth.accounts;
  const { id, passwordHash } = (await users.findByEmail('ann@example.com'))!;
  await users.replacePasswordHash(id, 'another', 'new');
  expect((await users.findById(id))!.passwordHash).toBe(passwordHash);
});

test('when too many log in at once the rest is told to come again', async () => {
  const answers = await Promise.all(Array.from({ length: 200 }, (_, n) => logIn(`${n}@example.com`)));
  const statuses = Map.groupBy(answers, ({ status }) => status);
  expect([...statuses.keys()].toSorted()).toEqual([401, 503]);
  expect(statuses.get(401)!.length).toBeGreaterThan(40);
  for (const { headers, error } of statuses.get(503)!) {
    expect(error?.error).toBe('service_unavailable');
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  }
});

test('logins are counted by how they ended', async () => {
  await until('there were too many failures', async () => {
    const refusals = await Promise.all(Array.from({ length: 11 }, () => refusal('guessed@example.com')));
    return refusals.some(({ answer }) => answer.status === 429);
  });
  const { values } = await auth.metrics.registry.getSingleMetric('logins_total')!.get();
  const counts = Object.fromEntries(values.map(({ labels, value }) => [labels['outcome'], value]));
  expect(Object.keys(counts).toSorted()).toEqual(['failure', 'limited', 'refused', 'success']);
  for (const count of Object.values(counts)) expect(count).toBeGreaterThan(0);
});

test('the token opens what the service itself guards', async () => {
  const { token, user } = await succeed('root@example.com');
  expect(decode(token).claims['scope']).toBe(scopes.join(' '));
  const answer = await call(auth.origin, me, { token });
  expect(answer.body).toEqual({ ...user, roles: ['admin'] });
});
