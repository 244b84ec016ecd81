import { expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { logIn, newUser } from '../../../test/support/accounts.ts';
import { newPushToken, pushTokensOf, register } from '../../../test/support/devices.ts';
import { stack } from '../../../test/support/stack.ts';
import { until } from '../../../test/support/wait.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

const { gateway } = stack();
const unknownId = 9007199254740991;
const badTokens = ['', 'x'.repeat(4_097), 'new\nline', 'nul\0', 'ümlaut', '🙂', 'del\x7f', 12, null, ['x']];

async function devicesOf(token: string) {
  return (await call(gateway, contract.listDevices, { token, query: { limit: 100 } })).body!.items;
}

const registerExample = {
  body: { token: newPushToken() },
  invalid: {
    fields: {
      token: [...badTokens, undefined],
      platform: ['windows'],
      name: ['', 'x'.repeat(101), '\ud800'],
      app_version: ['x'.repeat(51)],
      user_id: [1],
    },
  },
};
describeEndpoint(contract.registerFcmToken, registerExample, ({ ask }) => {
  test('removes the device when its session ends, without the push token', async () => {
    const user = await newUser();
    await ask({ token: user.token, body: { token: newPushToken() } });
    const other = await logIn(user.email, user.password);
    const kept = newPushToken();
    await ask({ token: other.token, body: { token: kept } });
    await call(gateway, contract.logout, { token: user.token });
    await until('the device was deleted', async () => (await pushTokensOf(user.id)).length === 1);
    expect(await pushTokensOf(user.id)).toEqual([kept]);
    await call(gateway, contract.deleteSessions, { token: other.token });
    await until('the other device was deleted', async () => (await pushTokensOf(user.id)).length === 0);
  });

  test('registers a device and hides its push token', async () => {
    const { token } = await newUser();
    const body = {
      token: newPushToken(),
      platform: 'ios' as const,
      name: "Olive's phone",
      app_version: '2.1',
    };
    const answer = await ask({ token, body });
    expect(answer.body).toMatchObject({
      success: true,
      device: { platform: 'ios', name: body.name, token_end: body.token.slice(-6), stale: false },
    });
    const { registered_at, last_seen_at } = answer.body!.device;
    expect(Math.abs(Date.now() - Date.parse(registered_at))).toBeLessThan(60_000);
    expect(last_seen_at).toBe(registered_at);
    expect(await devicesOf(token)).toEqual([answer.body!.device]);
    expect(JSON.stringify(answer.body)).not.toContain(body.token);
  });
});

describeEndpoint(contract.listDevices, {}, ({ ask }) => {
  test("lists the user's own devices, newest first, in pages", async () => {
    const [user, another] = [await newUser(), await newUser()];
    await register(another.token, { token: newPushToken() });
    const made = [];
    for (let each = 0; each < 3; each += 1) made.push(await register(user.token, { token: newPushToken() }));
    const first = (await ask({ token: user.token, query: { limit: 2 } })).body!;
    expect(first).toEqual({ items: [made[2], made[1]], next_cursor: String(made[1]!.id) });
    const second = await ask({ token: user.token, query: { limit: 2, cursor: first.next_cursor! } });
    expect(second.body).toEqual({ items: [made[0]], next_cursor: null });
  });
});

describeEndpoint(contract.deleteDevice, {}, ({ ask }) => {
  test('deletes one device and keeps the others', async () => {
    const { token } = await newUser();
    const goes = await register(token, { token: newPushToken() });
    const stays = await register(token, { token: newPushToken() });
    expect(await ask({ token, params: { id: goes.id } })).toMatchObject({ status: 204 });
    expect(await devicesOf(token)).toEqual([stays]);
  });
});

describeEndpoint(contract.listDeviceTokens, {}, ({ ask }) => {
  test('lists complete push tokens, newest first, in pages; an unknown user has none', async () => {
    const { token, id } = await newUser();
    const [older, newer] = [newPushToken().padEnd(4_090, 'x') + '"\\$1;~', newPushToken()];
    const { last_seen_at } = await register(token, { token: older, platform: 'ios' });
    await register(token, { token: newer });
    const params = { id };
    const first = (await ask({ params, query: { limit: 1 } })).body!;
    expect(first.items).toMatchObject([{ token: newer, platform: null }]);
    const second = (await ask({ params, query: { limit: 1, cursor: first.next_cursor! } })).body!;
    expect(second).toEqual({ items: [{ token: older, platform: 'ios', last_seen_at }], next_cursor: null });
    expect((await ask({ params: { id: unknownId } })).body).toEqual({ items: [], next_cursor: null });
  });
});

const feedbackExample = {
  body: { results: [] },
  invalid: {
    fields: {
      results: [
        ...badTokens.map((token) => [{ token, outcome: 'invalid' }]),
        [{ token: 'x', outcome: 'lost' }],
        [{ token: 'x' }],
        [{ token: 'x', outcome: 'invalid', at: 1 }],
        undefined,
      ],
      all: [true],
    },
  },
};
describeEndpoint(contract.deviceFeedback, feedbackExample, ({ ask }) => {
  test('removes unregistered and invalid tokens and keeps delivered ones', async () => {
    const { token, id } = await newUser();
    const [delivered, unregistered, invalid] = [newPushToken(), newPushToken(), newPushToken()];
    for (const push of [delivered, unregistered, invalid]) await register(token, { token: push });
    const results = [
      { token: delivered, outcome: 'delivered' as const },
      { token: unregistered, outcome: 'unregistered' as const },
      { token: invalid, outcome: 'invalid' as const },
      { token: newPushToken(), outcome: 'invalid' as const },
    ];
    expect((await ask({ body: { results } })).body).toEqual({ removed: 2, unknown: 1 });
    expect(await pushTokensOf(id)).toEqual([delivered]);
  });

  test('accepts 1,000 tokens of maximum length and refuses 1,001', async () => {
    const longest = () => ({ token: newPushToken().padEnd(4_096, 'x'), outcome: 'invalid' as const });
    const results = Array.from({ length: 1_000 }, longest);
    expect((await ask({ body: { results } })).body).toEqual({ removed: 0, unknown: 1_000 });
    const { error } = await ask({ body: { results: [...results, longest()] } });
    expect(error).toMatchObject({ error: 'validation_failed', details: [{ path: 'body.results' }] });
  });
});
