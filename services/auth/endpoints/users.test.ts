import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { until } from '../../../test/support/wait.ts';
import { createUserStore } from '../user-store.ts';
import { holdOpen, untilBlocked } from '../../../test/support/locks.ts';
import { decode, startAuth, type TestAuth } from '../testing.ts';

const password = 'wooden lantern drifts past nine';
let auth: TestAuth;
/** An administrating machine: its token outlasts what happens to admins here. */
let token: string;

beforeAll(async () => {
  auth = await startAuth();
  await auth.addClient('console', 'console-secret', 'users:admin');
  const body = { grant_type: 'client_credentials', client_id: 'console', client_secret: 'console-secret' };
  token = (await call(auth.origin, contract.token, { body })).body!.access_token;
});
afterAll(() => auth.stop());

let made = 0;
/** A user without a password, made past the endpoints. */
async function addUser(
  roles: contract.Role[],
  more: { email?: string; name?: string } = {},
): Promise<number> {
  made += 1;
  const user = { email: `user-${made}@example.com`, name: 'A Person', passwordHash: null, roles, ...more };
  return (await auth.accounts.users.create(user))!.id;
}

const update = (id: number, body: { name?: string; roles?: contract.Role[]; disabled?: boolean }) =>
  call(auth.origin, contract.updateUser, { params: { id }, body, token });
const remove = (id: number) => call(auth.origin, contract.deleteUser, { params: { id }, token });
const read = (id: number) => call(auth.origin, contract.readUser, { params: { id }, token });
const create = (body: { email: string; name: string; password?: string }) =>
  call(auth.origin, contract.createUser, { body, token });

async function auditOf(userId: number) {
  const query = { user_id: userId };
  const { body } = await call(auth.origin, contract.listAudit, { query, token });
  return body!.items;
}

describe('the last admin', () => {
  /** The only admins there are. */
  async function onlyAdmins(count: number): Promise<number[]> {
    await auth.database.query('test', `UPDATE auth.user SET roles = '{user}'`);
    return Promise.all(Array.from({ length: count }, () => addUser(['user', 'admin'])));
  }

  const ways = {
    demoted: (id: number) => update(id, { roles: ['user', 'sre'] }),
    disabled: (id: number) => update(id, { disabled: true }),
    deleted: remove,
  };

  test.each(Object.entries(ways))('is not %s, and nothing of it is on record', async (_, takeAway) => {
    const [id] = await onlyAdmins(1);
    const answer = await takeAway(id!);
    expect(answer.error).toMatchObject({ error: 'last_admin', code: 409 });
    expect((await read(id!)).body).toMatchObject({ roles: ['user', 'admin'], disabled: false });
    expect(await auditOf(id!)).toEqual([]);
  });

  test('a disabled admin does not count, and may go', async () => {
    const [id, disabled] = await onlyAdmins(2);
    expect(await update(disabled!, { disabled: true })).toMatchObject({ status: 200 });
    expect((await update(id!, { disabled: true })).error?.error).toBe('last_admin');
    expect(await update(disabled!, { roles: ['user'] })).toMatchObject({ status: 200 });
    expect(await remove(disabled!)).toMatchObject({ status: 204 });
  });

  test('may take another role beside, or another name', async () => {
    const [id] = await onlyAdmins(1);
    const body = { name: 'Renamed', roles: ['admin' as const] };
    expect(await update(id!, body)).toMatchObject({ status: 200, body });
  });

  test('one is left however many go at the same time, and in whatever way', async () => {
    const all = Object.values(ways);
    for (let round = 0; round < 20; round++) {
      const ids = await onlyAdmins(4);
      const answers = await Promise.all(ids.map((id, index) => all[(round + index) % all.length]!(id)));
      const refused = answers.filter(({ error }) => error !== undefined);
      expect(refused).toMatchObject([{ error: { error: 'last_admin' } }]);
    }
  });
});

describe('sessions', () => {
  async function logIn() {
    made += 1;
    const email = `person-${made}@example.com`;
    await auth.addUser(email, password, 'user', 'sre');
    const { body } = await call(auth.origin, contract.login, { body: { email, password } });
    return { id: body!.user.id, email, token: body!.token, refreshToken: body!.refresh_token };
  }
  const refresh = (refresh_token: string) =>
    call(auth.origin, contract.token, { body: { grant_type: 'refresh_token', refresh_token } });

  test.each([
    ['losing a role', 'revoked', (id: number) => update(id, { roles: ['user', 'admin'] })],
    ['being disabled', 'revoked', (id: number) => update(id, { disabled: true })],
    ['being deleted', 'unknown', remove],
  ])('%s ends them', async (_, reason, takeAway) => {
    const person = await logIn();
    expect((await takeAway(person.id)).error).toBeUndefined();
    const { error } = await refresh(person.refreshToken);
    expect(error).toMatchObject({ error: 'invalid_grant', details: [{ path: 'reason', message: reason }] });
    await until('the access token is refused', async () => {
      const answer = await call(auth.origin, contract.listSessions, { token: person.token });
      return answer.error?.error === 'invalid_token';
    });
  });

  test('a role more, another name and nothing at all leave them as they are', async () => {
    const { id, refreshToken } = await logIn();
    await update(id, { roles: ['user', 'sre', 'admin'], name: 'Another' });
    await update(id, {});
    const { body } = await refresh(refreshToken);
    expect(body!.scope).toBe(contract.scopes.join(' '));
  });

  test('a login that was under way has the roles that are left', async () => {
    const { id, email } = await logIn();
    const commit = await holdOpen(auth.database, async (query) => {
      const users = createUserStore(query);
      await users.update(id, { ...(await users.lock(id))!, roles: ['user'] });
    });
    const login = call(auth.origin, contract.login, { body: { email, password } });
    await untilBlocked(auth.database);
    await commit();
    expect(decode((await login).body!.token).claims['scope']).toBe('');
  });
});

describe('making users', () => {
  test('without a password they cannot log in, whatever they send', async () => {
    const email = 'later@example.com';
    const { status, body } = await create({ email, name: 'Later' });
    expect({ status, body }).toMatchObject({
      status: 201,
      body: { email, roles: ['user'], disabled: false },
    });
    expect((await auth.accounts.users.findByEmail(email))!.passwordHash).toBeNull();
    const refused = await call(auth.origin, contract.login, { body: { email, password: 'anything' } });
    expect(refused.error?.error).toBe('invalid_credentials');
  });

  test('with a password they can; a weak one is refused with the reason', async () => {
    const email = 'strong@example.com';
    for (const weak of ['short', 'aaaaaaaaaaaaaaaaaaaaaaaa', 'strong@example.com']) {
      const { error } = await create({ email, name: 'Strong', password: weak });
      expect(error).toMatchObject({ error: 'validation_failed', details: [{ path: 'body.password' }] });
    }
    expect(await create({ email, name: 'Strong', password })).toMatchObject({ status: 201 });
    const answer = await call(auth.origin, contract.login, { body: { email, password } });
    expect(answer.status).toBe(200);
  });

  test('of many with one address at the same time one is made', async () => {
    const emails = ['Same@example.com', 'same@EXAMPLE.com', 'SAME@example.com', 'same@example.com'];
    const answers = await Promise.all(emails.map((email) => create({ email, name: 'Same', password })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409]);
  });
});

describe('searching', () => {
  const search = async (part: string, more: Record<string, string | number> = {}) => {
    const { body } = await call(auth.origin, contract.listUsers, { query: { search: part, ...more }, token });
    return body!;
  };
  const names = async (part: string) => (await search(part)).items.map(({ name }) => name);

  beforeAll(async () => {
    await addUser(['user'], { name: '100% Ünïcode', email: 'percent@search.test' });
    await addUser(['user'], { name: 'under_score', email: 'underscore@search.test' });
    await addUser(['user'], { name: 'back\\slash', email: 'Back.Slash@search.test' });
  });

  test.each([
    ['%', ['100% Ünïcode']],
    ['_', ['under_score']],
    ['\\', ['back\\slash']],
    ['0% ünÏ', ['100% Ünïcode']],
    ['UNDER', ['under_score']],
    ['back.SLASH@', ['back\\slash']],
    ['100_', []],
    [`' OR true --`, []],
  ])('%j is found in names and addresses as it stands, in any case', async (part, found) => {
    expect(await names(part)).toEqual(found);
  });

  test('pages, newest first', async () => {
    const first = await search('@search.test', { limit: 2 });
    expect(first.items.map(({ name }) => name)).toEqual(['back\\slash', 'under_score']);
    const second = await search('@search.test', { limit: 2, cursor: first.next_cursor! });
    expect(second).toMatchObject({ items: [{ name: '100% Ünïcode' }], next_cursor: null });
  });
});
