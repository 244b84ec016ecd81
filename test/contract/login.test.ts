import { expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { login } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { emails, password } from '../support/accounts.ts';
import { stack } from '../support/stack.ts';
import { until } from '../support/wait.ts';
import { describeEndpoint } from './describe-endpoint.ts';

const body = { email: emails.user, password };

describeEndpoint(login, { path: '/api/login', body }, ({ ask, send }) => {
  test('the right password: a token, and who it belongs to', async () => {
    const answer = await ask({ body });
    expect(answer).toMatchObject({
      status: 200,
      body: { token_type: 'Bearer', expires_in: 900, user: { email: emails.user } },
    });
    expect(answer.headers.get('cache-control')).toBe('no-store');
  });

  test('the address in other case: the same account', async () => {
    expect(await ask({ body: { ...body, email: emails.user.toUpperCase() } })).toMatchObject({ status: 200 });
  });

  test('a wrong password and an unknown address look the same', async () => {
    const wrong = await ask({ body: { ...body, password: 'not-the-password' } });
    const unknown = await ask({ body: { ...body, email: 'nobody@example.com' } });
    expect(wrong.error).toMatchObject({ error: 'invalid_credentials', code: 401 });
    expect(wrong.headers.get('www-authenticate')).toBe('Bearer');
    expect({ ...unknown.error, request_id: '' }).toEqual({ ...wrong.error, request_id: '' });
    const names = (headers: Headers) => [...headers.keys()].toSorted();
    expect(names(unknown.headers)).toEqual(names(wrong.headers));
  });

  test('after ten failures: 429, counted in Redis', async () => {
    const redis = new Redis(stack().redis);
    // Straight at the service, which believes the address: the gateway's own would be spent for the other tests.
    const address = `203.0.113.${Math.floor(Math.random() * 256)}`;
    const headers = { 'X-Forwarded-For': address };
    const fail = () =>
      call(stack().services['auth']!.public, login, {
        body: { email: 'nobody@example.com', password: 'not-the-password' },
        headers,
      });
    try {
      const limited = await until('there were too many failures', async () => {
        const answers = await Promise.all(Array.from({ length: 11 }, fail));
        return answers.find(({ status }) => status === 429);
      });
      expect(limited.error?.error).toBe('rate_limited');
      expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0);
      const counted = JSON.parse((await redis.get(`guesses:json:address:${address}`))!) as { count: number };
      expect(counted.count).toBeGreaterThanOrEqual(10);
    } finally {
      redis.disconnect();
    }
  });

  test.each([
    [{ email: '', password }],
    [{ email: emails.user }],
    [{ email: emails.user, password, remember: true }],
    [{ email: emails.user, password: 'x'.repeat(10_240) }],
    [{ email: [emails.user], password }],
    [{ email: `${emails.user}\0`, password }],
    [{ email: emails.user, password: '\ud800' }],
    [{ email: { $ne: null }, password: { $ne: null } }],
  ])('%.80j: 422', async (wrong) => {
    expect((await send({ body: JSON.stringify(wrong) })).error?.error).toBe('validation_failed');
  });
});
