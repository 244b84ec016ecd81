import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { revocationPage } from '@content-platform/chassis';
import { createInternal } from './internal.ts';
import { startAuth, type TestAuth } from './testing.ts';

let auth: TestAuth;
let internal: Server;
let origin: string;
beforeAll(async () => {
  auth = await startAuth();
  internal = createServer(express().use(createInternal(auth.stores)));
  await once(internal.listen(0, '127.0.0.1'), 'listening');
  origin = `http://127.0.0.1:${(internal.address() as AddressInfo).port}`;
});
afterAll(async () => {
  internal.close();
  internal.closeAllConnections();
  await auth.stop();
});

const ask = (target: string) => fetch(origin + target);
const find = (query: Record<string, string>) => ask(`/users?${new URLSearchParams(query)}`);

test('returns the feed of revocations, and 422 for an id that is none', async () => {
  const page = revocationPage.parse(await (await ask('/revocations?after=0')).json());
  expect(page.last).toBeGreaterThanOrEqual(0);
  for (const query of [
    '',
    '?after=',
    '?after=-1',
    '?after=x',
    '?after=1&after=2',
    `?after=${'1'.repeat(17)}`,
  ]) {
    expect((await ask(`/revocations${query}`)).status).toBe(422);
  }
});

test('finds a user by email or id, and takes two letters beyond A to Z for two users', async () => {
  const add = async (email: string) => {
    const person = { email, name: 'A Person', passwordHash: null, roles: ['user' as const] };
    return (await auth.accounts.users.create(person))!.id;
  };
  const [upper, lower, plus] = [
    await add('\u00c9@example.com'),
    await add('\u00e9@example.com'),
    await add('ann+1@example.com'),
  ];
  for (const [query, id] of [
    [{ email: '\u00c9@EXAMPLE.com' }, upper],
    [{ email: '\u00e9@example.com' }, lower],
    [{ email: 'Ann+1@example.com' }, plus],
    [{ id: String(plus) }, plus],
  ] as const) {
    const found = await find(query);
    expect([found.status, await found.json()]).toEqual([200, { id }]);
  }
});

test('returns 404 for a user that does not exist', async () => {
  for (const query of [{ email: 'nobody@example.com' }, { email: '%' }, { id: '9007199254740991' }]) {
    const found = await find(query);
    expect([found.status, await found.text()]).toEqual([404, '']);
  }
});

test.each([
  '',
  '?email=',
  '?id=0',
  '?id=x',
  '?id=1&id=2',
  '?id=1&email=a@example.com',
  '?email=a%00b',
  '?name=Ann',
])('returns 422 for /users%s', async (query) => {
  expect((await ask(`/users${query}`)).status).toBe(422);
});

test('returns 503 while the users cannot be read', async () => {
  await auth.database.query('hide', 'ALTER TABLE auth.user RENAME TO hidden');
  try {
    expect((await find({ id: '1' })).status).toBe(503);
  } finally {
    await auth.database.query('show', 'ALTER TABLE auth.hidden RENAME TO "user"');
  }
});
