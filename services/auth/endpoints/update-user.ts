import type { Body, Role, updateUser as contract } from '@content-platform/contract';
import { actorOf, type Handler } from '@content-platform/chassis';
import { toAccount } from '../replies.ts';
import { isAdmin, lockUser, refuseLastAdmin } from '../administration.ts';
import type { AuthContext } from '../context.ts';
import { requireRecentLogin } from '../sessions/recent-login.ts';
import type { User } from '../user-store.ts';

function changed(user: User, { name, roles, disabled }: Body<typeof contract>): User {
  return {
    ...user,
    name: name ?? user.name,
    roles: roles ?? user.roles,
    disabled: disabled ?? user.disabled,
  };
}

function lacksSome(roles: readonly Role[], of: readonly Role[]): boolean {
  return of.some((role) => !roles.includes(role));
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

export function updateUser({ database }: AuthContext): Handler<typeof contract> {
  return async ({ caller, params: { id }, body, address }) => {
    const isSensitive = body.roles !== undefined || body.disabled !== undefined;
    if (isSensitive) await requireRecentLogin(database.sessions, caller);
    const user = await database.transaction(async ({ users, sessions, audit }) => {
      const before = await lockUser(users, id);
      const after = changed(before, body);
      const details = differences(before, after);
      if (Object.keys(details).length === 0) return before;
      if (isAdmin(before) && !isAdmin(after)) await refuseLastAdmin(users, id);
      await users.update(id, after);
      await audit.add({ event: 'user_changed', userId: id, actor: actorOf(caller), address, details });
      const loses = lacksSome(after.roles, before.roles) || (after.disabled && !before.disabled);
      if (loses) await sessions.endAll(id);
      return after;
    });
    return { status: 200, body: toAccount(user) };
  };
}
