import type { User } from './user-store.ts';

/** A user as an administrator sees them on the wire. */
export function toAccount({ id, email, name, roles, disabled, createdAt }: User) {
  return { id, email, name, roles, disabled, created_at: createdAt.toISOString() };
}
