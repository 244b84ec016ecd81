import { expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import express from 'express';
import { createServiceFetch, revocationPage } from '@content-platform/chassis';
import { listSessions, logout, type Scope } from '@content-platform/contract';
import { startHttpServer } from '../../test/support/http-server.ts';
import { useStarted } from '../../test/support/use-started.ts';
import { createInternal } from './internal.ts';
import { devicesSecret, useAuth } from './testing/start-auth.ts';

const auth = useAuth();
const internal = useStarted(() => startHttpServer(express().use(createInternal(auth.internal))));

const send = (target: string, authorization?: string, method = 'GET') =>
  fetch(internal.origin + target, { method, headers: authorization ? { authorization } : {} });
const ask = (target: string) => send(target, `Bearer ${auth.tokens.forService('letters')}`);
const find = (query: Record<string, string>) => ask(`/users?${new URLSearchParams(query)}`);
const basic = (pair: string) => `Basic ${Buffer.from(pair).toString('base64')}`;

test('a service gets a token for its secret only', async () => {
  for (const pair of ['devices:', 'devices:wrong', `letters:${devicesSecret}`, devicesSecret, ''])
    expect((await send('/service-token', basic(pair), 'POST')).status).toBe(401);
  expect((await send('/service-token', undefined, 'POST')).status).toBe(401);
  const { id } = await auth.person();
  const asDevices = createServiceFetch(internal.origin, 'devices', devicesSecret);
  expect((await asDevices(`${internal.origin}/users?id=${id}`, {})).status).toBe(200);
});

test("a service's token is refused by the API, and no client can be granted its scope", async () => {
  const { error } = await auth.ask(listSessions, { token: auth.tokens.forService('devices') });
  expect(error?.error).toBe('insufficient_scope');
  const { error: logoutError } = await auth.ask(logout, { token: auth.tokens.forService('devices') });
  expect(logoutError?.error).toBe('insufficient_scope');
  await auth.addClient('intruder', 'a-secret-of-an-intruder', 'internal' as Scope);
  const { body } = await auth.askAsClient('intruder', 'a-secret-of-an-intruder');
  expect(body?.scope).toBe('');
});

test('returns the feed of revocations, and 422 for an id that is none', async () => {
  const page = revocationPage.parse(await (await ask('/revocations?after=0')).json());
  expect(page.last).toBeGreaterThanOrEqual(0);
  const long = `?after=${'1'.repeat(17)}`;
  for (const query of ['', '?after=', '?after=-1', '?after=x', '?after=1&after=2', long])
    expect((await ask(`/revocations${query}`)).status).toBe(422);
});

test('a reader that has the newest version waits for the next revocation', async () => {
  const read = async (after: number, known: string) => {
    const response = await ask(`/revocations?after=${after}&keys=true&known=${encodeURIComponent(known)}`);
    const json = await response.json();
    // Callers need no token, so the reply must have no other fields.
    expect(json).toEqual(revocationPage.parse(json));
    return revocationPage.parse(json);
  };
  const { last, version } = await read(0, '');
  const waiting = read(last, version!);
  expect(await Promise.race([waiting, sleep(300, 'still waiting')])).toBe('still waiting');
  await auth.stores.transaction(({ revocations }) => revocations.add({ sessions: [51] }));
  const isTold = (await waiting).revocations.length > 0;
  expect(isTold ? await waiting : await read(last, version!)).toMatchObject({
    revocations: [{ session: '51' }],
  });
  expect(await read(0, version!)).toMatchObject({ last: last + 1 });
});

test('lists ended sessions after an id, with the newest id of the feed', async () => {
  const { last } = await auth.stores.revocations.listAfter(0);
  await auth.stores.transaction(({ revocations }) => revocations.add({ sessions: [41, 42] }));
  const reply = await ask(`/ended-sessions?after=${last}`);
  const page = (await reply.json()) as { sessions: object[]; last: number };
  expect(page.sessions).toMatchObject([{ session_id: 41 }, { session_id: 42 }]);
  expect(page.last).toBeGreaterThan(last);
  expect((await ask('/ended-sessions?after=x')).status).toBe(422);
});

test('finds a user by email or id, and takes two letters beyond A to Z for two users', async () => {
  const add = async (email: string) => {
    const person = { email, name: 'A Person', passwordHash: null, roles: ['user' as const] };
    return (await auth.stores.users.create(person))!.id;
  };
  const upper = await add('\u00c9@example.com');
  const lower = await add('\u00e9@example.com');
  const plus = await add('ann+1@example.com');
  for (const [query, id] of [
    [{ email: '\u00c9@EXAMPLE.com' }, upper],
    [{ email: '\u00e9@example.com' }, lower],
    [{ email: 'e\u0301@example.com' }, lower],
    [{ email: 'Ann+1@example.com' }, plus],
    [{ id: String(plus) }, plus],
  ] as const) {
    const found = await find(query);
    expect([found.status, await found.json()]).toEqual([200, { id }]);
  }
});

test('returns 404 for a user that does not exist', async () => {
  for (const query of [{ email: 'unknown@example.com' }, { email: '%' }, { id: '9007199254740991' }]) {
    const found = await find(query);
    expect([found.status, await found.text()]).toEqual([404, '']);
  }
});

test('a service adds entries of its own event to the audit log, and no others', async () => {
  const entry = {
    event: 'letter_read',
    actor: 'user:9',
    address: '2001:db8::9',
    user_id: 5,
    details: { letter_id: 3 },
  };
  const add = async (body: object | string, service = 'letters') => {
    const headers = {
      authorization: `Bearer ${auth.tokens.forService(service)}`,
      'content-type': 'application/json',
    };
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return (await fetch(`${internal.origin}/audit`, { method: 'POST', headers, body: text })).status;
  };
  expect(await add(entry)).toBe(204);
  expect(await auth.stores.audit.list({ userId: 5 }, undefined, 10)).toMatchObject([entry]);
  expect(await add(entry, 'devices')).toBe(403);
  expect(await add({ ...entry, event: 'failed_jobs_deleted' })).toBe(403);
  for (const wrong of [
    { event: 'login' },
    { actor: 'command' },
    { address: 'fe80::1%eth0' },
    { id: 1 },
    { at: '2020-01-01T00:00:00Z' },
  ])
    expect(await add({ ...entry, ...wrong })).toBe(422);
  expect(await add('{')).toBe(400);
  expect(await add({ ...entry, details: { text: 'x'.repeat(70_000) } })).toBe(413);
  expect(await auth.stores.audit.list({ userId: 5 }, undefined, 10)).toHaveLength(1);
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

test.each([
  ['user', '/users?id=1'],
  ['revocation', '/revocations?after=0'],
])('returns 503 without a body while the table %s cannot be read', async (table, target) => {
  await auth.sql(`ALTER TABLE auth.${table} RENAME TO hidden`);
  try {
    const answer = await ask(target);
    expect([answer.status, await answer.text()]).toEqual([503, '']);
  } finally {
    await auth.sql(`ALTER TABLE auth.hidden RENAME TO "${table}"`);
  }
});
