import { beforeAll, expect, test } from '@jest/globals';
import { token } from '@content-platform/contract';
import { longBackoff, queriesOf, useAuth } from '../testing/start-auth.ts';

const secret = 'the secret of a machine';
const auth = useAuth({ backoff: longBackoff });
beforeAll(async () => {
  await auth.addClient('cms', secret, 'cache:clear');
});

async function ask(address: string, client_id: string, client_secret = 'a wrong secret', scope?: string) {
  const body = { grant_type: 'client_credentials', client_id, client_secret, ...(scope && { scope }) };
  const headers = { 'X-Forwarded-For': address };
  const answer = await auth.ask(token, { body, headers });
  const { error } = answer;
  return { error: error?.error, message: error?.message, retryAfter: answer.headers.get('retry-after') };
}

async function exhaust(address: string, client: string) {
  for (let n = 0; n < 10; n += 1) expect((await ask(address, client)).error).toBe('invalid_client');
}

const refusalsWritten = async () =>
  (await auth.sql(`SELECT FROM auth.audit WHERE event = 'client_refused'`)).length;

test.each([
  ['a client', 'cms', '192.0.2.1'],
  ['an unknown client', 'unknown', '192.0.2.2'],
  ['an invalid name', 'c\u{7f}ms', '192.0.2.3'],
])(
  'throttles guesses of the secret of %s; refused guesses cause no check and no audit row',
  async (_, client, from) => {
    await exhaust(from, client);
    const before = [await queriesOf(auth, 'find_client'), await refusalsWritten()];
    for (const given of ['a wrong secret', secret]) {
      const answer = await ask(from, client, given);
      expect(answer).toMatchObject({
        error: 'rate_limited',
        message: expect.stringMatching(/^Too many failed/),
      });
      expect(Number(answer.retryAfter)).toBeGreaterThan(300);
    }
    expect([await queriesOf(auth, 'find_client'), await refusalsWritten()]).toEqual(before);
  },
);

test('accepts the right secret from a known network, and records wrong ones', async () => {
  const [home, neighbour] = ['2001:db8:0:1::1', '2001:db8:0:1::2'];
  expect((await ask(home, 'cms', secret)).error).toBeUndefined();
  await exhaust(neighbour, 'cms');
  const before = await refusalsWritten();
  expect((await ask(neighbour, 'cms')).error).toBe('rate_limited');
  expect(await refusalsWritten()).toBe(before + 1);
  expect((await ask(home, 'cms', secret)).error).toBeUndefined();
});

test('does not count a request for too many scopes as a guess', async () => {
  const from = '192.0.2.4';
  for (let n = 0; n < 11; n += 1)
    expect((await ask(from, 'cms', secret, 'users:admin')).error).toBe('invalid_scope');
  expect((await ask(from, 'cms', secret)).error).toBeUndefined();
});
