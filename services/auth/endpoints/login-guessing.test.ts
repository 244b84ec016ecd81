import { beforeAll, expect, test } from '@jest/globals';
import { longBackoff, password, useAuth, visible } from '../testing/start-auth.ts';

const auth = useAuth({ backoff: longBackoff });
beforeAll(async () => {
  await auth.addUser('ann@example.com', password);
  await auth.addUser('ben@example.com', password);
});

const logIn = (email: string, address: string, given = 'a wrong password') =>
  auth.logIn(email, given, { 'X-Forwarded-For': address });

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

const failuresWritten = async () =>
  (await auth.sql(`SELECT FROM auth.audit WHERE event = 'login_failed'`)).length;

test('throttles guesses, also for an unknown email', async () => {
  const before = await failuresWritten();
  await Promise.all([exhaust('ann@example.com', '192.0.2.1'), exhaust('unknown@example.com', '192.0.2.2')]);
  const equalized = auth.equalized();
  const refusals = await Promise.all([
    logIn('ann@example.com', '192.0.2.1'),
    logIn('Ann@Example.com', '192.0.2.1', password),
    logIn('unknown@example.com', '192.0.2.2'),
    logIn('Unknown@Example.com', '192.0.2.2'),
  ]);
  for (const answer of refusals) {
    expect(visible(answer)).toEqual(visible(refusals[0]));
    expect(answer).toMatchObject({ status: 429, error: { error: 'rate_limited' } });
    const retryAfter = Number(answer.headers.get('retry-after'));
    expect(retryAfter).toBeGreaterThan(300);
    expect(retryAfter).toBeLessThanOrEqual(600);
  }
  expect(auth.equalized()).toBe(equalized + 4);
  // Only checked attempts are recorded; a flood of refused attempts would fill the table.
  expect(await failuresWritten()).toBe(before + 20);
});

test('accepts the right password from an IP address with a session, and returns the usual 429 for a wrong one', async () => {
  const [home, neighbour, away] = ['2001:db8:0:1::1', '2001:db8:0:1::2', '192.0.2.3'];
  expect((await logIn('ben@example.com', home, password)).status).toBe(200);
  const before = await failuresWritten();
  for (const address of [home, away]) await exhaust('ben@example.com', address);
  const equalized = auth.equalized();
  const answers = [await logIn('ben@example.com', home), await logIn('ben@example.com', away)];
  const [wrong, stranger] = answers.map(visible);
  // The gateway removes server-timing, which shows the database's work.
  for (const { headers } of [wrong!, stranger!]) delete headers['server-timing'];
  expect(wrong).toEqual(stranger);
  // The known network's attempt was checked and recorded; the stranger's was not.
  expect(await failuresWritten()).toBe(before + 21);
  expect(auth.equalized()).toBe(equalized + 2);
  expect((await logIn('ben@example.com', away, password)).status).toBe(429);
  expect((await logIn('ben@example.com', neighbour, password)).status).toBe(200);
});

test("an IP address is not known after its session's logout", async () => {
  const address = '192.0.2.4';
  expect((await logIn('ann@example.com', address, password)).status).toBe(200);
  await exhaust('ann@example.com', address);
  await auth.sql('UPDATE auth.session SET ended_at = now()');
  expect((await logIn('ann@example.com', address, password)).status).toBe(429);
});
