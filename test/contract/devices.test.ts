import { expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { newUser } from '../support/accounts.ts';
import { newPushToken, pushTokensOf, register } from '../support/devices.ts';
import { stack } from '../support/stack.ts';
import { describeEndpoint } from './describe-endpoint.ts';

const { gateway } = stack();
const nobody = 9007199254740991;
const badPages = ['limit=0', 'limit=101', 'limit=x', 'cursor=!', 'cursor=0'];
const badIds = ['0', '-1', '1.5', 'x', '01', '9007199254740992'];
const badTokens = ['', 'x'.repeat(4_097), 'new\nline', 'nul\0', 'ümlaut', '🙂', 'del\x7f', 12, null, ['x']];

async function devicesOf(token: string) {
  return (await call(gateway, contract.listDevices, { token, query: { limit: 100 } })).body!.items;
}

describeEndpoint(
  contract.registerFcmToken,
  { path: '/api/register-fcm-token', as: 'user', body: { token: newPushToken() } },
  ({ ask, send }) => {
    test('a device is registered, and its token is not shown', async () => {
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

    test('again: it is the same device, seen later; what is not said stays', async () => {
      const { token } = await newUser();
      const body = { token: newPushToken(), platform: 'web' as const, name: 'Laptop' };
      const first = await register(token, body);
      const again = (await ask({ token, body: { token: body.token, name: 'Old laptop' } })).body!.device;
      expect(again).toEqual({ ...first, name: 'Old laptop', last_seen_at: again.last_seen_at });
      expect(Date.parse(again.last_seen_at)).toBeGreaterThan(Date.parse(first.last_seen_at));
      expect(await devicesOf(token)).toEqual([again]);
    });

    test("a phone that is handed on brings nothing along, and gets none of the other's messages", async () => {
      const [one, another] = [await newUser(), await newUser()];
      const body = { token: newPushToken(), platform: 'android' as const, name: "One's phone" };
      const before = await register(one.token, body);
      const { device } = (await ask({ token: another.token, body: { token: body.token } })).body!;
      expect(device).toMatchObject({ platform: null, name: null });
      expect(Date.parse(device.registered_at)).toBeGreaterThan(Date.parse(before.registered_at));
      expect(await devicesOf(one.token)).toEqual([]);
      expect(await pushTokensOf(one.id)).toEqual([]);
      expect(await pushTokensOf(another.id)).toEqual([body.token]);
    });

    test('two users at once, 50 times: exactly one has the token', async () => {
      const [one, another] = [await newUser(), await newUser()];
      for (let round = 0; round < 50; round += 1) {
        const body = { token: newPushToken() };
        const answers = await Promise.all([one, another].map(({ token }) => ask({ token, body })));
        expect(answers.map(({ status }) => status)).toEqual([200, 200]);
        const lists = await Promise.all([one, another].map(({ id }) => pushTokensOf(id)));
        expect(lists.flat().filter((token) => token === body.token)).toHaveLength(1);
      }
    });

    test('40 devices at once: 20 remain', async () => {
      const { token, id } = await newUser();
      const bodies = Array.from({ length: 40 }, () => ({ token: newPushToken() }));
      const answers = await Promise.all(bodies.map((body) => ask({ token, body })));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
      const left = await pushTokensOf(id);
      expect(new Set(left).size).toBe(20);
      expect(await devicesOf(token)).toHaveLength(20);
    });

    test('the longest unseen goes', async () => {
      const { token, id } = await newUser();
      const tokens = Array.from({ length: 20 }, newPushToken) as [string, string, ...string[]];
      for (const push of tokens) await register(token, { token: push });
      await register(token, { token: tokens[0] });
      const newest = newPushToken();
      await ask({ token, body: { token: newest } });
      const left = await pushTokensOf(id);
      expect(left).toHaveLength(20);
      expect(left).toEqual(expect.arrayContaining([newest, tokens[0]]));
      expect(left).not.toContain(tokens[1]);
    });

    test('a token of 4,096 characters is stored whole', async () => {
      const { token, id } = await newUser();
      const body = { token: newPushToken().padEnd(4_090, 'x') + '"\\$1;~' };
      expect((await ask({ token, body })).body!.device.token_end).toBe('"\\$1;~');
      expect(await pushTokensOf(id)).toEqual([body.token]);
    });

    test.each(badTokens)('the token %.20j: 422', async (wrong) => {
      const { error } = await send({ body: JSON.stringify({ token: wrong }) });
      expect(error).toMatchObject({ error: 'validation_failed', details: [{ path: 'body.token' }] });
    });

    test.each([
      { token: undefined },
      { platform: 'windows' },
      { platform: null },
      { name: '' },
      { name: 'x'.repeat(101) },
      { name: 'nul\0' },
      { name: '\ud800' },
      { app_version: '' },
      { app_version: 'x'.repeat(51) },
      { user_id: 1 },
    ])('%.60j: 422', async (wrong) => {
      const body = JSON.stringify({ token: newPushToken(), ...wrong });
      expect((await send({ body })).error?.error).toBe('validation_failed');
    });
  },
);

describeEndpoint(contract.listDevices, { path: '/api/devices', as: 'user' }, ({ ask, send }) => {
  test("one's own, newest first, a page at a time", async () => {
    const [user, another] = [await newUser(), await newUser()];
    await register(another.token, { token: newPushToken() });
    const made = [];
    for (let each = 0; each < 3; each += 1) made.push(await register(user.token, { token: newPushToken() }));
    const first = (await ask({ token: user.token, query: { limit: 2 } })).body!;
    expect(first).toEqual({ items: [made[2], made[1]], next_cursor: String(made[1]!.id) });
    const second = await ask({ token: user.token, query: { limit: 2, cursor: first.next_cursor! } });
    expect(second.body).toEqual({ items: [made[0]], next_cursor: null });
  });

  test('none', async () => {
    expect((await ask({ token: (await newUser()).token })).body).toEqual({ items: [], next_cursor: null });
  });

  test.each(badPages)('?%s: 422', async (query) => {
    expect((await send({ path: `/api/devices?${query}` })).error?.error).toBe('validation_failed');
  });
});

describeEndpoint(contract.deleteDevice, { path: `/api/devices/${nobody}`, as: 'user' }, ({ ask, send }) => {
  test('one device goes, the others stay; a second time it is not there', async () => {
    const { token } = await newUser();
    const [goes, stays] = [
      await register(token, { token: newPushToken() }),
      await register(token, { token: newPushToken() }),
    ];
    expect(await ask({ token, params: { id: goes.id } })).toMatchObject({ status: 204 });
    expect(await devicesOf(token)).toEqual([stays]);
    expect((await ask({ token, params: { id: goes.id } })).error?.error).toBe('not_found');
  });

  test("another person's: 404, and it stays", async () => {
    const [one, another] = [await newUser(), await newUser()];
    const device = await register(another.token, { token: newPushToken() });
    expect((await ask({ token: one.token, params: { id: device.id } })).error?.error).toBe('not_found');
    expect(await devicesOf(another.token)).toEqual([device]);
  });

  test.each(badIds)('the id %s: 422', async (id) => {
    expect((await send({ path: `/api/devices/${id}` })).error?.error).toBe('validation_failed');
  });
});

describeEndpoint(
  contract.listDeviceTokens,
  { path: `/api/admin/users/${nobody}/device-tokens`, as: 'admin' },
  ({ ask, send }) => {
    test('whole tokens, newest first, a page at a time', async () => {
      const { token, id } = await newUser();
      const [older, newer] = [newPushToken(), newPushToken()];
      const { last_seen_at } = await register(token, { token: older, platform: 'ios' });
      await register(token, { token: newer });
      const params = { id };
      const first = (await ask({ params, query: { limit: 1 } })).body!;
      expect(first.items).toMatchObject([{ token: newer, platform: null }]);
      const second = (await ask({ params, query: { limit: 1, cursor: first.next_cursor! } })).body!;
      expect(second).toEqual({ items: [{ token: older, platform: 'ios', last_seen_at }], next_cursor: null });
    });

    test('of nobody: none', async () => {
      expect((await ask({ params: { id: nobody } })).body).toEqual({ items: [], next_cursor: null });
    });

    test.each(badPages)('?%s: 422', async (query) => {
      const path = `/api/admin/users/1/device-tokens?${query}`;
      expect((await send({ path })).error?.error).toBe('validation_failed');
    });
    test.each(badIds)('the id %s: 422', async (id) => {
      const path = `/api/admin/users/${id}/device-tokens`;
      expect((await send({ path })).error?.error).toBe('validation_failed');
    });
  },
);

describeEndpoint(
  contract.deviceFeedback,
  { path: '/api/admin/devices/feedback', as: 'admin', body: { results: [] } },
  ({ ask, send }) => {
    test('what is unregistered or invalid is removed, what was delivered stays', async () => {
      const { token, id } = await newUser();
      const [delivered, unregistered, invalid, stays] = Array.from({ length: 4 }, newPushToken) as [
        string,
        string,
        string,
        string,
      ];
      for (const push of [delivered, unregistered, invalid, stays]) await register(token, { token: push });
      const results = [
        { token: delivered, outcome: 'delivered' as const },
        { token: unregistered, outcome: 'unregistered' as const },
        { token: invalid, outcome: 'invalid' as const },
        { token: invalid, outcome: 'invalid' as const },
        { token: newPushToken(), outcome: 'delivered' as const },
        { token: newPushToken(), outcome: 'invalid' as const },
      ];
      expect((await ask({ body: { results } })).body).toEqual({ removed: 2, unknown: 2 });
      expect(await pushTokensOf(id)).toEqual([stays, delivered]);
      expect((await ask({ body: { results } })).body).toEqual({ removed: 0, unknown: 4 });
    });

    test('none: nothing', async () => {
      expect((await ask({ body: { results: [] } })).body).toEqual({ removed: 0, unknown: 0 });
    });

    const longest = (many: number) =>
      Array.from({ length: many }, () => ({
        token: newPushToken().padEnd(4_096, 'x'),
        outcome: 'invalid' as const,
      }));
    test('1,000 of the longest at once', async () => {
      expect((await ask({ body: { results: longest(1_000) } })).body).toEqual({ removed: 0, unknown: 1_000 });
    });
    test('1,001: 422', async () => {
      const { error } = await ask({ body: { results: longest(1_001) } });
      expect(error).toMatchObject({ error: 'validation_failed', details: [{ path: 'body.results' }] });
    });

    test.each(badTokens)('the token %.20j: 422', async (wrong) => {
      const body = JSON.stringify({ results: [{ token: wrong, outcome: 'invalid' }] });
      expect((await send({ body })).error?.error).toBe('validation_failed');
    });
    test.each([
      { results: [{ token: 'x', outcome: 'lost' }] },
      { results: [{ token: 'x' }] },
      { results: [{ token: 'x', outcome: 'invalid', at: 1 }] },
      { results: {} },
      { results: [], all: true },
      {},
    ])('%j: 422', async (body) => {
      expect((await send({ body: JSON.stringify(body) })).error?.error).toBe('validation_failed');
    });
  },
);
