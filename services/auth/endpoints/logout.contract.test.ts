import { expect, test } from '@jest/globals';
import { logout } from '@content-platform/contract';
import { logIn, newUser, refresh } from '../../../test/support/accounts.ts';
import { newPushToken, pushTokensOf, register } from '../../../test/support/devices.ts';
import { isAcceptedEverywhere, untilRefused } from '../../../test/support/revoked.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

const invalid = { fields: { fcm_token: [1, 'x'.repeat(4_097)], all: [true] } };

describeEndpoint(logout, { body: {}, invalid }, ({ ask }) => {
  test("revokes the session's tokens everywhere and keeps other sessions", async () => {
    const user = await newUser();
    const other = await logIn(user.email, user.password);
    const next = (await refresh(user.refreshToken)).body!;
    for (const token of [user.token, next.access_token]) expect(await isAcceptedEverywhere(token)).toBe(true);

    expect(await ask({ token: user.token })).toMatchObject({ status: 204 });
    expect(await refresh(next.refresh_token!)).toMatchObject({ reason: 'revoked' });
    expect(await refresh(user.refreshToken)).toMatchObject({ reason: 'revoked' });
    for (const token of [user.token, next.access_token]) await untilRefused(token);

    expect(await isAcceptedEverywhere(other.token)).toBe(true);
    expect(await refresh(other.refreshToken)).toMatchObject({ status: 200 });
  });

  test('keeps the device that another session of the user registered', async () => {
    const { token, id, email, password } = await newUser();
    const [deleted, kept] = [newPushToken(), newPushToken()];
    await register(token, { token: deleted });
    await register((await logIn(email, password)).token, { token: kept });
    expect(await ask({ token, body: { fcm_token: deleted } })).toMatchObject({ status: 204 });
    expect(await pushTokensOf(id)).toEqual([kept]);
  });

  test("keeps another user's device when its push token is given", async () => {
    const [one, another] = [await newUser(), await newUser()];
    const theirs = newPushToken();
    await register(another.token, { token: theirs });
    expect(await ask({ token: one.token, body: { fcm_token: theirs } })).toMatchObject({ status: 204 });
    await untilRefused(one.token);
    expect(await pushTokensOf(another.id)).toEqual([theirs]);
  });

  test.each([{ fcm_token: 'unknown' }, { fcm_token: '' }, { fcm_token: null }])(
    'accepts %j',
    async (body) => {
      const { token } = await newUser();
      expect(await ask({ token, body })).toMatchObject({ status: 204 });
      await untilRefused(token);
    },
  );
});
