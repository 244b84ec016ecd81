import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { revocationPage } from '@content-platform/chassis';
import { until } from '../../../test/support/wait.ts';
import { createInternal } from './internal.ts';
import { forgetRevocations, revocationsAfter, revoke } from './revocations.ts';
import { startAuth, type TestAuth } from '../testing.ts';

let auth: TestAuth;
let internal: Server;
beforeAll(async () => {
  auth = await startAuth();
  internal = createServer(express().use(createInternal(auth.database.query)));
  await once(internal.listen(0, '127.0.0.1'), 'listening');
});
afterAll(async () => {
  internal.close();
  internal.closeAllConnections();
  await auth.stop();
});

const revokeNow = (what: Parameters<typeof revoke>[1]) =>
  auth.database.transaction((query) => revoke(query, what));
const after = (id: number) => revocationsAfter(auth.database.query, id);

test('the feed tells sessions and clients once, and how far it goes', async () => {
  const { last: before } = await after(0);
  await revokeNow({ sessions: [11, 12] });
  const asked = Math.floor(Date.now() / 1000);
  await revokeNow({ client: 'cms' });
  const { revocations, last } = await after(before);
  expect(revocations).toMatchObject([{ session: '11' }, { session: '12' }, { client: 'cms' }]);
  const { issued_until: until } = revocations.at(-1) as { issued_until: number };
  expect(until).toBeGreaterThanOrEqual(asked);
  expect(await after(last)).toEqual({ revocations: [], last });
});

test('who has seen one has seen all before it, also when two are made at once', async () => {
  const { last: before } = await after(0);
  const both: Promise<void>[] = [];
  const page = await auth.database.transaction(async (query) => {
    await revoke(query, { sessions: [21] });
    let done = false;
    both.push(revokeNow({ sessions: [22] }).finally(() => (done = true)));
    await until('the second waits for the first, or has overtaken it', async () => {
      const text = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'`;
      return done || (await auth.database.query('waiting', text)).rowCount === 1;
    });
    return after(before);
  });
  await Promise.all(both);
  const rest = await after(page.last);
  expect([...page.revocations, ...rest.revocations]).toMatchObject([{ session: '21' }, { session: '22' }]);
});

test('what no living token needs is not told and is deleted, but for the newest', async () => {
  await revokeNow({ sessions: [31] });
  await auth.database.query('age', `UPDATE auth.revocation SET at = at - interval '17 minutes'`);
  const { last } = await after(0);
  expect(last).toBeGreaterThan(0);
  expect((await after(0)).revocations.filter(({ id }) => id !== last)).toEqual([]);
  await forgetRevocations(auth.database.query);
  const { rows } = await auth.database.query<{ id: string }>('all', 'SELECT id FROM auth.revocation');
  expect(rows.map(({ id }) => Number(id))).toEqual([last]);
});

test('the internal listener answers the feed, and 422 to what is no id', async () => {
  const { port } = internal.address() as AddressInfo;
  const ask = (query: string) => fetch(`http://127.0.0.1:${port}/revocations${query}`);
  const page = revocationPage.parse(await (await ask('?after=0')).json());
  expect(page.last).toBeGreaterThan(0);
  for (const query of [
    '',
    '?after=',
    '?after=-1',
    '?after=x',
    '?after=1&after=2',
    `?after=${'1'.repeat(17)}`,
  ]) {
    expect((await ask(query)).status).toBe(422);
  }
});
