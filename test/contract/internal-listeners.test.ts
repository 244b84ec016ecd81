import { expect, test } from '@jest/globals';
import { exporters, services } from '@content-platform/contract';
import { tokenOf } from '../support/accounts.ts';
import { stack } from '../support/stack.ts';
import { until } from '../support/wait.ts';

const internalOf = (name: string) => stack().services[name]!.internal;

test.each(services)('$name publishes its metrics and health without a token', async ({ name }) => {
  for (const path of ['/metrics', '/health/live', '/health/ready'])
    await until(`${path} returns 200`, async () => (await fetch(internalOf(name) + path)).status === 200);
});

const json = { 'Content-Type': 'application/json' };
test.each<[string, string, RequestInit]>([
  ['devices', '/unregister', { method: 'POST', body: '{"user_id":1,"token":"a-push-token"}' }],
  ...exporters.map(({ name }): [string, string, RequestInit] => [name, '/export?user_id=1', {}]),
  ['auth', '/users?id=1', {}],
  ['auth', '/users?email=user@example.com', {}],
  ['auth', '/ended-sessions?after=0', {}],
  ['auth', '/audit', { method: 'POST', body: '{}' }],
])('%s refuses %s without the token of a service', async (name, path, init) => {
  const send = (headers: Record<string, string>) =>
    fetch(internalOf(name) + path, { ...init, headers: { ...json, ...headers } });
  expect((await send({})).status).toBe(401);
  for (const account of ['user', 'admin', 'machine'] as const) {
    const token = await tokenOf(stack().gateway, account);
    expect((await send({ Authorization: `Bearer ${token}` })).status).toBe(403);
  }
});
