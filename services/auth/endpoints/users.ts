import { actorOf, type Handler, HttpError, invalidFields, page } from '@content-platform/chassis';
import type * as contract from '@content-platform/contract';
import { addUser, findUser, isAdmin, lockUser, refuseLastAdmin, removeUser } from '../administration.ts';
import type { AuthContext } from '../context.ts';
import { toAccount, toIdentity } from '../replies.ts';
import { requireRecentLogin } from '../sessions/caller.ts';
import type { User } from '../user-store.ts';

export function listUsers({ database }: AuthContext): Handler<typeof contract.listUsers> {
  return async ({ query: { search, limit, cursor } }) => {
    const read = (rows: number) => database.users.list(search, cursor, rows);
    return { status: 200, body: await page(limit, read, toAccount) };
  };
}

export function readUser({ database }: AuthContext): Handler<typeof contract.readUser> {
  return async ({ params: { id } }) => {
    const user = await findUser(database.users, id);
    const identities = (await database.identities.list(id)).map(toIdentity);
    return { status: 200, body: { ...toAccount(user), mfa_enabled: user.hasMfa, identities } };
  };
}

function emailTaken(): HttpError<'email_taken'> {
  return new HttpError('email_taken', 'Another user has this email address.');
}

export function createUser(context: AuthContext): Handler<typeof contract.createUser> {
  const { database, passwords, policy } = context;

  async function hashOf(password: string, newUser: { email: string; name: string }): Promise<string> {
    // Saves the cost of a hash. The transaction refuses one of two simultaneous requests.
    if (await database.users.findByEmail(newUser.email)) throw emailTaken();
    const message = await policy.findProblem(password, newUser);
    if (message === undefined) return passwords.hash(password);
    throw invalidFields([{ path: 'body.password', message }]);
  }

  return async ({ caller, body: { password, ...newUser }, address }) => {
    if (newUser.roles.some((role) => role !== 'user')) await requireRecentLogin(database.sessions, caller);
    const passwordHash =
      password === undefined ? null : await passwords.limit(() => hashOf(password, newUser));
    const by = { actor: actorOf(caller), address };
    const user = await database.transaction((stores) => addUser(stores, { ...newUser, passwordHash }, by));
    if (!user) throw emailTaken();
    return { status: 201, body: toAccount(user) };
  };
}

function lacksSome(roles: readonly contract.Role[], expected: readonly contract.Role[]): boolean {
  return expected.some((role) => !roles.includes(role));
}

/** Returns the change for the audit log, without names, which are personal data; empty if nothing changed. */
function differences(before: User, after: User): Record<string, unknown> {
  const roles = lacksSome(after.roles, before.roles) || lacksSome(before.roles, after.roles);
  return {
    ...(before.name !== after.name && { name: 'changed' }),
    ...(roles && { roles: { from: before.roles, to: after.roles } }),
    ...(before.disabled !== after.disabled && { disabled: { from: before.disabled, to: after.disabled } }),
  };
}

export function updateUser({ database }: AuthContext): Handler<typeof contract.updateUser> {
  return async ({ caller, params: { id }, body, address }) => {
    const isSensitive = body.roles !== undefined || body.disabled !== undefined;
    if (isSensitive) await requireRecentLogin(database.sessions, caller);
    const user = await database.transaction(async ({ users, passwordResets, sessions, audit }) => {
      const before = await lockUser(users, id);
      // Checked again: the transaction may have waited for another one that ended the caller's sessions.
      if (isSensitive) await requireRecentLogin(sessions, caller);
      const { name = before.name, roles = before.roles, disabled = before.disabled } = body;
      const after = { ...before, name, roles, disabled };
      const details = differences(before, after);
      if (Object.keys(details).length === 0) return before;
      if (isAdmin(before) && !isAdmin(after)) await refuseLastAdmin(users, id);
      await users.update(id, after);
      // Otherwise a link that an attacker got by mail would work once the user is enabled again.
      if (disabled) await passwordResets.cancelOf(id);
      await audit.add({ event: 'user_changed', userId: id, actor: actorOf(caller), address, details });
      if (lacksSome(roles, before.roles) || (disabled && !before.disabled)) await sessions.endAll(id);
      return after;
    });
    return { status: 200, body: toAccount(user) };
  };
}

export function deleteUser({ database }: AuthContext): Handler<typeof contract.deleteUser> {
  return async ({ caller, params: { id }, address }) => {
    await database.transaction(async (stores) => {
      const user = await lockUser(stores.users, id);
      await removeUser(stores, user, { actor: actorOf(caller), address });
    });
    return { status: 204 };
  };
}
