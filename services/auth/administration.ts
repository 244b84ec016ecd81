import { HttpError } from '@content-platform/chassis';
import type { Actor } from './audit-store.ts';
import type { Stores } from './stores.ts';
import type { NewUser, User, UserStore } from './user-store.ts';

/** The actor of everything that `npm run admin` does. */
export const byCommand: Actor = { actor: 'command' };

/** Creates a user and the audit entry. Call it in a transaction. Returns undefined if another user has the email. */
export async function addUser({ users, audit }: Stores, user: NewUser, by: Actor): Promise<User | undefined> {
  const created = await users.create(user);
  if (created) {
    const details = { roles: user.roles };
    await audit.add({ ...by, event: 'user_created', userId: created.id, details });
  }
  return created;
}

function existing(user: User | undefined, id: number): User {
  if (!user) throw new HttpError('not_found', `User ${id} was not found.`);
  return user;
}

/** Throws 404. */
export const findUser = async (users: UserStore, id: number) => existing(await users.findById(id), id);

/** Locks the user until the transaction ends. Throws 404. */
export const lockUser = async (users: UserStore, id: number) => existing(await users.lock(id), id);

/** Removes the user's second factor; returns false if there is none. Against deadlocks, `lockUser` must come first. */
export async function removeMfa({ mfa, audit }: Stores, userId: number, by: Actor): Promise<boolean> {
  const removed = await mfa.remove(userId);
  if (removed) await audit.add({ ...by, event: 'mfa_disabled', userId });
  return removed;
}

/**
 * Deletes a locked user. A trigger adds the id to the feed of deleted users and deletes the persons in the audit log.
 */
export async function eraseUser({ users, sessions, audit }: Stores, id: number, by: Actor): Promise<void> {
  await audit.add({ ...by, event: 'user_deleted', userId: id });
  await sessions.deleteTokensAndEnded(id);
  // Revokes the user's access tokens. Deleting the user would delete the sessions, but not revoke the tokens.
  await sessions.endAll(id);
  await users.delete(id);
}

/** Deletes a locked user with `eraseUser`. Throws 409 for the last admin. */
export async function removeUser(stores: Stores, user: User, by: Actor): Promise<void> {
  if (isAdmin(user)) await refuseLastAdmin(stores.users, user.id);
  await eraseUser(stores, user.id, by);
}

/** Returns whether the user can administer other users. */
export function isAdmin({ roles, disabled }: Pick<User, 'roles' | 'disabled'>): boolean {
  return roles.includes('admin') && !disabled;
}

/** Throws 409 for the last admin. Call it in the transaction that removes the rights. */
export async function refuseLastAdmin(users: UserStore, id: number): Promise<void> {
  if (await users.hasOtherAdmin(id)) return;
  throw new HttpError('last_admin', 'This is the last admin. Make another user an admin first.');
}
