import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { longBackoff, startAuth, type TestAuth } from '../testing.ts';

const password = 'a-password-to-keep';
let auth: TestAuth;

beforeAll(async () => {
  auth = await startAuth({ backoff: longBackoff });
  await auth.addUser('ann@example.com', password);
  await auth.addUser('ben@example.com', password);
});
afterAll(() => auth.stop());

/** What the client sees, without what differs in every reply. */
async function logIn(email: string, address: string, given = 'a wrong password') {
  const response = await fetch(`${auth.origin}/api/login`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': address },
    body: JSON.stringify({ email, password: given }),
  });
  const text = await response.text();
  const headers = Object.fromEntries(response.headers);
  const retryAfter = Number(headers['retry-after']);
  // The number of database calls stays, their time goes.
  headers['server-timing'] = headers['server-timing']!.replace(/dur=[\d.]+/, '');
  for (const name of ['date', 'x-request-id', 'retry-after']) delete headers[name];
  const body = text.replace(/"request_id":"[^"]+"/, '"request_id":""');
  return { status: response.status, retryAfter, seen: { status: response.status, headers, body } };
}

/** Fails ten times, in two spellings, so that waits begin. A busy machine may answer 503, which does not count. */
async function exhaust(email: string, address: string) {
  const spellings = [email, email.toUpperCase()];
  for (let left = 10; left > 0;) {
    const tries = Array.from({ length: left }, (_, n) => logIn(spellings[n % 2]!, address));
    const statuses = (await Promise.all(tries)).map(({ status }) => status);
    for (const status of statuses) expect([401, 503]).toContain(status);
    left -= statuses.filter((status) => status === 401).length;
  }
}

async function failuresWritten() {
  const text = `SELECT FROM auth.audit WHERE event = 'login_failed'`;
  return (await auth.database.query('test', text)).rowCount!;
}

test('who guesses has to wait; an address that nobody has behaves in the same way', async () => {
  const before = await failuresWritten();
  await Promise.all([exhaust('ann@example.com', '192.0.2.1'), exhaust('nobody@example.com', '192.0.2.2')]);
  const equalized = auth.equalized();
  const refusals = await Promise.all([
    logIn('ann@example.com', '192.0.2.1'),
    logIn('Ann@Example.com', '192.0.2.1', password),
    logIn('nobody@example.com', '192.0.2.2'),
    logIn('Nobody@Example.com', '192.0.2.2'),
  ]);
  for (const { seen, retryAfter } of refusals) {
    expect(seen).toEqual(refusals[0].seen);
    expect(seen).toMatchObject({ status: 429, body: expect.stringContaining('"error":"rate_limited"') });
    expect(retryAfter).toBeGreaterThan(300);
    expect(retryAfter).toBeLessThanOrEqual(600);
  }
  expect(auth.equalized()).toBe(equalized + 4);
  // Those that were let try; a flood of the others would fill the table.
  expect(await failuresWritten()).toBe(before + 20);
});

test('an address with a session lets the right password in, and tells a wrong one no more than others', async () => {
  const [home, neighbour, away] = ['2001:db8:0:1::1', '2001:db8:0:1::2', '192.0.2.3'];
  expect((await logIn('ben@example.com', home, password)).status).toBe(200);
  const before = await failuresWritten();
  for (const address of [home, away]) await exhaust('ben@example.com', address);
  const equalized = auth.equalized();
  const [wrong, stranger] = [await logIn('ben@example.com', home), await logIn('ben@example.com', away)];
  // The gateway lets nobody see how much the database did.
  for (const { seen } of [wrong, stranger]) delete seen.headers['server-timing'];
  expect(wrong.seen).toEqual(stranger.seen);
  // It was checked, so it is on record; the stranger's was not.
  expect(await failuresWritten()).toBe(before + 21);
  expect(auth.equalized()).toBe(equalized + 2);
  expect((await logIn('ben@example.com', away, password)).status).toBe(429);
  expect((await logIn('ben@example.com', neighbour, password)).status).toBe(200);
});

test('an address that was logged out is none with a session', async () => {
  const address = '192.0.2.4';
  expect((await logIn('ann@example.com', address, password)).status).toBe(200);
  await exhaust('ann@example.com', address);
  await auth.database.query('test', 'UPDATE auth.session SET ended_at = now()');
  expect((await logIn('ann@example.com', address, password)).status).toBe(429);
});
