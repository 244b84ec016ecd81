import { HttpError } from '@content-platform/chassis';
import type { User } from './user-store.ts';

/** A user as they see themselves on the wire. */
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

/** A user as an administrator sees them on the wire. */
export function toAccount({ id, email, name, roles, disabled, createdAt }: User) {
  return { id, email, name, roles, disabled, created_at: createdAt.toISOString() };
}

/** The token outlives the user's right to it by the second in which it is revoked everywhere. */
export function userGone(): HttpError<'invalid_token'> {
  return new HttpError(401, 'invalid_token', 'The user of this access token is gone.', undefined, {
    headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
  });
}
