import { expect, test } from '@jest/globals';
import { until } from '../../../test/support/wait.ts';
import { createRevocationStore } from './revocation-store.ts';
import { useAuth } from '../testing/start-auth.ts';

const auth = useAuth();

const revokeNow = (what: { sessions?: number[]; client?: string }) =>
  auth.stores.transaction(({ revocations }) => revocations.add(what));
const after = (id: number) => auth.stores.revocations.listAfter(id);

test('the feed returns each revocation once, and its last id', async () => {
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

test('a reader of an id has seen all earlier revocations, also of concurrent transactions', async () => {
  const { last: before } = await after(0);
  const both: Promise<void>[] = [];
  const page = await auth.database.transaction(async (query) => {
    await createRevocationStore(query).add({ sessions: [21] });
    let done = false;
    both.push(revokeNow({ sessions: [22] }).finally(() => (done = true)));
    await until('the second waits for the first, or has overtaken it', async () => {
      const text = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'`;
      return done || (await auth.sql(text)).length === 1;
    });
    return after(before);
  });
  await Promise.all(both);
  const rest = await after(page.last);
  expect([...page.revocations, ...rest.revocations]).toMatchObject([{ session: '21' }, { session: '22' }]);
});

test('omits revocations that no token needs any more, and deletes all but the newest after 30 days', async () => {
  await revokeNow({ sessions: [31] });
  await revokeNow({ client: 'old' });
  await auth.sql(`UPDATE auth.revocation SET at = at - interval '17 minutes'`);
  const { last } = await after(0);
  expect((await after(0)).revocations.filter(({ id }) => id !== last)).toEqual([]);
  await auth.stores.revocations.deleteExpired();
  expect((await auth.stores.revocations.listEndedSessions(0)).sessions.at(-1)).toMatchObject({
    session_id: 31,
  });
  await auth.sql(`UPDATE auth.revocation SET at = at - interval '31 days'`);
  await auth.stores.revocations.deleteExpired();
  expect(await auth.sql('SELECT id::int FROM auth.revocation')).toEqual([{ id: last }]);
});
