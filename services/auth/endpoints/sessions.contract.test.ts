import { expect, test } from '@jest/globals';
import { deleteSession, deleteSessions, listSessions } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { logIn, newUser, refresh } from '../../../test/support/accounts.ts';
import { isAcceptedEverywhere, untilRefused } from '../../../test/support/revoked.ts';
import { stack } from '../../../test/support/stack.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

async function sessionsOf(token: string) {
  return (await call(stack().gateway, listSessions, { token })).body!.items;
}

describeEndpoint(listSessions, {}, ({ ask }) => {
  test("lists the user's own sessions, newest first, and marks the current one", async () => {
    const user = await newUser();
    const { token, address } = await logIn(user.email, user.password);
    const { body } = await ask({ token });
    const now = Date.now();
    expect(body!.items).toMatchObject([
      { device: 'node', address, current: true },
      { device: 'node', address: user.address, current: false },
    ]);
    for (const { created_at, last_used_at } of body!.items) {
      expect(Math.abs(now - Date.parse(created_at))).toBeLessThan(60_000);
      expect(Date.parse(last_used_at)).toBeGreaterThanOrEqual(Date.parse(created_at));
    }
    const first = (await ask({ token, query: { limit: 1 } })).body!;
    expect(first.items).toEqual(body!.items.slice(0, 1));
    const second = await ask({ token, query: { limit: 1, cursor: first.next_cursor! } });
    expect(second.body).toEqual({ items: body!.items.slice(1), next_cursor: null });
  });

  test("a refresh updates the session's last use", async () => {
    const { token, refreshToken } = await newUser();
    const before = (await sessionsOf(token))[0]!;
    await refresh(refreshToken);
    const after = (await sessionsOf(token))[0]!;
    expect(after.id).toBe(before.id);
    expect(Date.parse(after.last_used_at)).toBeGreaterThan(Date.parse(before.last_used_at));
  });
});

describeEndpoint(deleteSession, {}, ({ ask }) => {
  test('ends one session and keeps the current one', async () => {
    const user = await newUser();
    const lost = await logIn(user.email, user.password);
    const { id } = (await sessionsOf(lost.token)).find(({ current }) => current)!;
    expect(await isAcceptedEverywhere(lost.token)).toBe(true);

    expect(await ask({ token: user.token, params: { id } })).toMatchObject({ status: 204 });
    expect(await refresh(lost.refreshToken)).toMatchObject({ reason: 'revoked' });
    await untilRefused(lost.token);
    expect(await sessionsOf(user.token)).toMatchObject([{ current: true }]);
    expect((await ask({ token: user.token, params: { id } })).error?.error).toBe('not_found');
  });
});

describeEndpoint(deleteSessions, {}, ({ ask }) => {
  test("ends all sessions of the user and no other user's", async () => {
    const [user, another] = [await newUser(), await newUser()];
    const second = await logIn(user.email, user.password);
    expect(await ask({ token: user.token })).toMatchObject({ status: 204 });
    for (const { token, refreshToken } of [user, second]) {
      expect(await refresh(refreshToken)).toMatchObject({ reason: 'revoked' });
      await untilRefused(token);
    }
    expect(await isAcceptedEverywhere(another.token)).toBe(true);
    expect(await refresh(another.refreshToken)).toMatchObject({ status: 200 });
    expect(await sessionsOf((await logIn(user.email, user.password)).token)).toHaveLength(1);
  });
});
