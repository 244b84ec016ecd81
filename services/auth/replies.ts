import { HttpError } from '@content-platform/chassis';
import type { User } from './user-store.ts';

/** Returns the user for replies to that user. */
export function toProfile({ id, email, name, roles, suborg, createdAt }: User) {
  return {
    id,
    email,
    name,
    roles,
    created_at: createdAt.toISOString(),
    ...(suborg === null ? {} : { suborg }),
  };
}

/** Returns the user for replies to administrators. */
export function toAccount({ id, email, name, roles, disabled, createdAt }: User) {
  return { id, email, name, roles, disabled, created_at: createdAt.toISOString() };
}

/** Returns the 401 for a token whose session or user was deleted: revoking it everywhere takes up to a second. */
export function sessionEnded(): HttpError<'invalid_token'> {
  return new HttpError('invalid_token', 'The session of this access token has ended.', {
    headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
  });
}
