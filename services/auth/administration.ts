import { type Database, HttpError } from '@content-platform/chassis';
import { audit, type AuditEntry } from './audit.ts';
import { createClientStore, type NewClient } from './client-store.ts';
import { createUserStore, type NewUser, type User } from './user-store.ts';

/** Who does it, from where. */
export type Actor = Pick<AuditEntry, 'actor' | 'address'>;
export const command: Actor = { actor: 'command' };

/** Makes the user; in a transaction. The id, or undefined when the address is taken. */
export async function addUser(
  query: Database['query'],
  user: NewUser,
  by: Actor,
): Promise<number | undefined> {
  const userId = await createUserStore(query).create(user);
  if (userId !== undefined) {
    await audit(query, { ...by, event: 'user_created', userId, details: { roles: user.roles } });
  }
  return userId;
}

/** Makes the machine client; in a transaction. False when the name is taken. */
export async function addClient(query: Database['query'], client: NewClient, by: Actor): Promise<boolean> {
  const made = await createClientStore(query).create(client);
  const { name, scopes } = client;
  if (made) await audit(query, { ...by, event: 'client_created', details: { client: name, scopes } });
  return made;
}

/** The user, who stays as they are until the transaction changes them. Throws 404. */
export async function lockUser(query: Database['query'], id: number): Promise<User> {
  const user = await createUserStore(query).lock(id);
  if (!user) throw new HttpError(404, 'not_found', `There is no user ${id}.`);
  return user;
}

/** Whether the user can administer the others. */
export function isAdmin({ roles, disabled }: Pick<User, 'roles' | 'disabled'>): boolean {
  return roles.includes('admin') && !disabled;
}

/** In the transaction that takes the user's rights away. Throws 409 when nobody would have them then. */
export async function refuseLastAdmin(query: Database['query'], id: number): Promise<void> {
  if (await createUserStore(query).hasOtherAdmin(id)) return;
  throw new HttpError(409, 'last_admin', 'This is the last admin: make another one first.');
}
