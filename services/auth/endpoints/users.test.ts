import { beforeAll, describe, expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { createUserStore } from '../user-store.ts';
import { decode, password, useAuth } from '../testing/start-auth.ts';

const auth = useAuth();
/** The token of an admin. Its scopes stay valid, whatever the tests do to the admin. */
let token: string;
beforeAll(async () => {
  ({ token } = await auth.person({}, 'admin'));
});

let made = 0;
async function addUser(roles: contract.Role[], more: { email?: string; name?: string } = {}) {
  made += 1;
  const user = { email: `user-${made}@example.com`, name: 'A Person', passwordHash: null, roles, ...more };
  return (await auth.stores.users.create(user))!.id;
}

const update = (id: number, body: { name?: string; roles?: contract.Role[]; disabled?: boolean }) =>
  auth.ask(contract.updateUser, { params: { id }, body, token });
const remove = (id: number) => auth.ask(contract.deleteUser, { params: { id }, token });
const create = (body: { email: string; name: string; password?: string }) =>
  auth.ask(contract.createUser, { body, token });

describe('the last admin', () => {
  async function onlyAdmins(count: number): Promise<number[]> {
    await auth.sql(`UPDATE auth.user SET roles = '{user}'`);
    return Promise.all(Array.from({ length: count }, () => addUser(['user', 'admin'])));
  }

  const ways = {
    demoted: (id: number) => update(id, { roles: ['user', 'sre'] }),
    disabled: (id: number) => update(id, { disabled: true }),
    deleted: remove,
  };

  test('may not rely on a disabled admin, who may be removed', async () => {
    const [id, disabled] = await onlyAdmins(2);
    expect(await update(disabled!, { disabled: true })).toMatchObject({ status: 200 });
    expect((await update(id!, { disabled: true })).error?.error).toBe('last_admin');
    expect(await update(disabled!, { roles: ['user'] })).toMatchObject({ status: 200 });
    expect(await remove(disabled!)).toMatchObject({ status: 204 });
  });

  test('may get another role or another name', async () => {
    const [id] = await onlyAdmins(1);
    const body = { name: 'Renamed', roles: ['admin' as const] };
    expect(await update(id!, body)).toMatchObject({ status: 200, body });
  });

  test('stays when all admins are removed concurrently, and refused removals are not recorded', async () => {
    const all = Object.values(ways);
    for (let round = 0; round < 20; round++) {
      const ids = await onlyAdmins(4);
      const answers = await Promise.all(ids.map((id, index) => all[(round + index) % all.length]!(id)));
      const refused = answers.filter(({ error }) => error !== undefined);
      expect(refused).toMatchObject([{ error: { error: 'last_admin' } }]);
      const left = `SELECT id::int FROM auth.user WHERE 'admin' = ANY (roles) AND NOT disabled`;
      const [{ id }] = (await auth.sql<{ id: number }>(left)) as [{ id: number }];
      expect(await auth.sql('SELECT FROM auth.audit WHERE user_id = $1', id)).toEqual([]);
    }
  });
});

test('deletes refresh tokens before their user, because one statement cannot delete millions', async () => {
  const { id } = await auth.person();
  await auth.sql(`ALTER TABLE auth.refresh_token DROP CONSTRAINT refresh_token_session_id_fkey,
                    ADD FOREIGN KEY (session_id) REFERENCES auth.session`);
  expect(await remove(id)).toMatchObject({ status: 204 });
});

test('adding a role, a new name or an empty change keeps the sessions', async () => {
  const { id, refreshToken } = await auth.person({}, 'sre');
  await update(id, { roles: ['user', 'sre', 'admin'], name: 'Another' });
  await update(id, {});
  expect((await auth.refresh(refreshToken)).body!.scope).toBe(contract.scopes.join(' '));
});

test('a login during the removal of a role gets the remaining roles', async () => {
  const { id, email } = await auth.person({}, 'sre');
  const { body } = await auth.whileHeld(
    async (query) => {
      const users = createUserStore(query);
      await users.update(id, { ...(await users.lock(id))!, roles: ['user'] });
    },
    () => auth.logIn(email),
  );
  expect(decode(body!.token).claims['scope']).toBe('');
});

test('an admin whose sessions end meanwhile cannot undo it', async () => {
  const { id, token: own } = await auth.person({}, 'admin');
  const options = { params: { id }, token: own };
  const end = `WITH ended AS (UPDATE auth.session SET ended_at = now() WHERE user_id = $1)
               UPDATE auth.user SET disabled = true WHERE id = $1`;
  const replies = await auth.whileHeld(
    (query) => query('end', end, [id]),
    () =>
      Promise.all([
        auth.ask(contract.updateUser, { ...options, body: { disabled: false } }),
        auth.ask(contract.createTemporaryPassword, options),
      ]),
  );
  for (const { error } of replies) expect(error?.error).toBe('reauthentication_required');
});

test('refuses a weak password of a new user', async () => {
  for (const weak of ['short', 'aaaaaaaaaaaaaaaaaaaaaaaa', 'strong@example.com']) {
    const { error } = await create({ email: 'strong@example.com', name: 'Strong', password: weak });
    expect(error).toMatchObject({ error: 'validation_failed', details: [{ path: 'body.password' }] });
  }
});

test('concurrent requests with one email create one user', async () => {
  const emails = ['Same@example.com', 'same@EXAMPLE.com', 'SAME@example.com', 'same@example.com'];
  const answers = await Promise.all(emails.map((email) => create({ email, name: 'Same', password })));
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409]);
});

describe('searching', () => {
  beforeAll(async () => {
    await addUser(['user'], { name: '100% Ünïcode', email: 'percent@search.test' });
    await addUser(['user'], { name: 'under_score', email: 'underscore@search.test' });
    await addUser(['user'], { name: 'back\\slash', email: 'Back.Slash@search.test' });
  });

  test.each([
    ['%', ['100% Ünïcode']],
    ['ünÏ'.normalize('NFD'), ['100% Ünïcode']],
    ['\\', ['back\\slash']],
    ['0% ünÏ', ['100% Ünïcode']],
    ['UNDER', ['under_score']],
    ['back.SLASH@', ['back\\slash']],
    ['100_', []],
    [`' OR true --`, []],
    ['@search.test', ['back\\slash', 'under_score', '100% Ünïcode']],
  ])('finds %j literally in names and emails, in any case, newest first', async (search, found) => {
    const { body } = await auth.ask(contract.listUsers, { query: { search }, token });
    expect(body!.items.map(({ name }) => name)).toEqual(found);
  });
});
