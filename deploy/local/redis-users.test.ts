import { afterAll, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { login, models, readContent } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { serviceOf, services } from '@content-platform/contract/services';
import { ROOT } from './config.ts';
import { tokenOf } from '../../test/support/accounts.ts';
import { stack } from '../../test/support/stack.ts';
import { until } from '../../test/support/wait.ts';
import { environmentOf } from './testing/environment.ts';

const clients: Redis[] = [];
afterAll(() => clients.forEach((client) => client.disconnect()));

function connect(url: string): Redis {
  const client = new Redis(url, { retryStrategy: () => null });
  client.on('error', () => {});
  clients.push(client);
  return client;
}

const keysOf = { gateway: 'rate:x:y', auth: 'guesses:json:x', 'content-cache': 'webform:1' } as const;
const users = Object.keys(keysOf) as (keyof typeof keysOf)[];

test.each(users)('%s reaches its own keys only', async (name) => {
  const client = connect(environmentOf(name).REDIS_URL!);
  await client.unlink(keysOf[name]).catch(() => client.set(keysOf[name], '1', 'EX', 1));
  for (const other of users.filter((user) => user !== name))
    for (const attack of [
      ['GET', keysOf[other]],
      ['UNLINK', keysOf[other]],
      ['HGETALL', keysOf[other]],
      ['EVAL', `return redis.call('SET', KEYS[1], 'x')`, '1', keysOf[other]],
    ])
      await expect(client.call(...(attack as [string, ...string[]]))).rejects.toThrow(/NOPERM|permission/i);
  for (const attack of ['FLUSHALL', 'ACL LIST', 'CONFIG GET requirepass', 'CLIENT LIST', 'MONITOR', 'KEYS *'])
    await expect(client.call(...(attack.split(' ') as [string, ...string[]]))).rejects.toThrow(/NOPERM/);
});

test('Redis refuses connections without a login', async () => {
  const { host } = new URL(stack().redis);
  await expect(connect(`redis://${host}`).get('webform:1')).rejects.toThrow(/NOAUTH/);
});

test('the URL in stack.json names its user, without which redis-cli cannot log in', () => {
  expect(new URL(stack().redis).username).toBe('default');
});

test('each service still stores its keys', async () => {
  const admin = connect(stack().redis);
  const { gateway } = stack();
  await admin.unlink(...Object.values(keysOf));
  const stored = (pattern: string) => async () => (await admin.keys(pattern)).length > 0;
  const token = await tokenOf(gateway, 'user');
  const readOnce = () => call(gateway, readContent, { params: { model: 'webform', id: 50 }, token });
  await until('the record is cached', () => readOnce().then(stored('webform:50')));
  await until('the request is counted', stored('rate:*'));
  await call(gateway, login, { body: { email: 'guess@example.com', password: 'wrong-password-here' } });
  await until('the failed login is counted', stored('guesses:*'));
});

test('the rules name every model, and docs/operations/redis-ha.md has them', () => {
  for (const model of models) expect(serviceOf('content-cache').redis).toContain(`~${model}:*`);
  for (const { stores, redis } of services) expect(stores.includes('redis')).toBe(redis !== undefined);
  const page = readFileSync(join(ROOT, 'docs/operations/redis-ha.md'), 'utf8');
  for (const { name, redis } of services)
    if (redis) expect(page).toContain(`\nuser ${name} on ><password> ${redis}\n`);
});
