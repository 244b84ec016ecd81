import { expect, test } from '@jest/globals';
import { listAudit, login } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { newAddress, newUser, tokenOf } from '../support/accounts.ts';
import { stack } from '../support/stack.ts';
import { describeEndpoint } from './describe-endpoint.ts';

const path = '/api/admin/audit';

const queries = ['event=other', 'event=', 'user_id=0', 'user_id=x', 'actor=command'];

describeEndpoint(listAudit, { path, as: 'admin', invalid: { queries } }, ({ ask }) => {
  test('lists the events of a user, newest first, in pages', async () => {
    const { gateway } = stack();
    const { id, email, address } = await newUser();
    const elsewhere = newAddress();
    const headers = { 'X-Forwarded-For': elsewhere };
    await call(gateway, login, { body: { email, password: 'not the password' }, headers });
    const { body } = await ask({ query: { user_id: id } });
    expect(body!.next_cursor).toBeNull();
    expect(body!.items).toMatchObject([
      { event: 'login_failed', user_id: id, actor: null, address: elsewhere },
      { event: 'login', user_id: id, actor: `user:${id}`, address, details: { device: 'node' } },
      { event: 'user_created', user_id: id, details: { roles: ['user'] } },
    ]);
    for (const { at } of body!.items) expect(Math.abs(Date.now() - Date.parse(at))).toBeLessThan(60_000);
    const first = (await ask({ query: { user_id: id, limit: 2 } })).body!;
    expect(first.items).toEqual(body!.items.slice(0, 2));
    const rest = await ask({ query: { user_id: id, limit: 2, cursor: first.next_cursor! } });
    expect(rest.body).toEqual({ items: body!.items.slice(2), next_cursor: null });
  });

  test('filters by event type', async () => {
    await tokenOf(stack().gateway, 'machine');
    const { body } = await ask({ query: { event: 'client_token' } });
    expect(new Set(body!.items.map(({ event }) => event))).toEqual(new Set(['client_token']));
    expect(body!.items.map(({ actor }) => actor)).toContain('client:content-server');
  });
});
