import { expect, test } from '@jest/globals';
import express from 'express';
import { type Caller, HttpError } from '@content-platform/chassis';
import type { Scope } from '@content-platform/contract';
import { startHttpServer } from '../../test/support/http-server.ts';
import { useStarted } from '../../test/support/use-started.ts';
import { createInternal } from './internal.ts';
import { openDevices } from './testing/devices.ts';

const own = useStarted(openDevices);
const server = useStarted(() =>
  startHttpServer(express().use(createInternal(own.devices, { verify }, own.logger))),
);
const url = () => `${server.origin}/unregister`;

/** Stands for the check of signatures: the token is the scope, and after an @ the service. */
const verify = async (token: string): Promise<Caller> => {
  if (token === 'forged') throw new HttpError('invalid_token', 'The access token is not one of ours.');
  const [scope, service = 'auth'] = token.split('@');
  return { kind: 'machine', clientId: `service:${service}`, scopes: new Set([scope as Scope]) };
};

async function unregister(body: unknown, authorization = 'Bearer internal'): Promise<number> {
  const headers = {
    'Content-Type': 'application/json',
    'X-Request-Id': 'the-logout',
    ...(authorization && { authorization }),
  };
  return (await fetch(url(), { method: 'POST', headers, body: JSON.stringify(body) })).status;
}
const tokensOf = async (userId: number) =>
  (await own.devices.listTokens(userId, undefined, 10)).map(({ token }) => token);

test('removes only the device of this user with this token', async () => {
  for (const token of ['goes', 'stays']) await own.devices.register(1, 1, { token });
  await own.devices.register(2, 1, { token: "another's" });
  for (const token of ['goes', 'goes', "another's", "nobody's"])
    expect(await unregister({ user_id: 1, token })).toBe(204);
  expect(await tokensOf(1)).toEqual(['stays']);
  expect(await tokensOf(2)).toEqual(["another's"]);
});

test('only a service with a token removes a device', async () => {
  await own.devices.register(3, 1, { token: 'kept' });
  for (const [authorization, status] of [
    ['', 401],
    ['Bearer forged', 401],
    ['Basic internal', 401],
    ['Bearer devices:manage', 403],
  ] as const)
    expect(await unregister({ user_id: 3, token: 'kept' }, authorization)).toBe(status);
  expect(await tokensOf(3)).toEqual(['kept']);
});

test('only auth reads the devices of a user for an export', async () => {
  const { id } = await own.devices.register(4, 1, { token: 'exported' });
  await own.devices.register(5, 1, { token: "another's" });
  const read = (token: string, query = '?user_id=4') =>
    fetch(`${server.origin}/export${query}`, { headers: { Authorization: `Bearer ${token}` } });
  expect(await (await read('internal')).json()).toMatchObject([{ id }]);
  expect((await read('internal@letters')).status).toBe(403);
  for (const query of ['', '?user_id=0', '?user_id=4&user_id=5', '?user_id=4&x=1'])
    expect((await read('internal', query)).status).toBe(422);
});

test('refuses a body that is not JSON, without logging it', async () => {
  const headers = { 'Content-Type': 'application/json', Authorization: 'Bearer internal' };
  const reply = await fetch(url(), { method: 'POST', headers, body: '{"user_id":1,"token":leaked' });
  expect([reply.status, await reply.text(), own.log.join().match('leaked')]).toEqual([400, '', null]);
});

test('accepts the longest token that a logout may send', async () => {
  expect(await unregister({ user_id: 1, token: '\u0001'.repeat(4_096) })).toBe(204);
});

test.each([
  {},
  { user_id: 1 },
  { user_id: 1, token: '' },
  { user_id: '1', token: 'x' },
  { user_id: 0, token: 'x' },
])('returns 422 for %j', async (body) => expect(await unregister(body)).toBe(422));

test('returns 503 for a failure, and logs it with the request ID and without the token', async () => {
  await own.sql('ALTER TABLE devices.device RENAME TO hidden');
  own.log.length = 0;
  expect(await unregister({ user_id: 1, token: 'a-token-to-keep-secret' })).toBe(503);
  await own.sql('ALTER TABLE devices.hidden RENAME TO device');
  expect(own.log.map((line) => JSON.parse(line) as object)).toMatchObject([
    { level: 'error', route: '/unregister', request_id: 'the-logout' },
  ]);
  expect(own.log.join()).not.toContain('a-token-to-keep-secret');
});
