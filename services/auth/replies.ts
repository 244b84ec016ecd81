import { HttpError } from '@content-platform/chassis';
import type { User } from './user-store.ts';

/** A user in replies to the user. */
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

/** A user in replies to administrators. */
export function toAccount({ id, email, name, roles, disabled, createdAt }: User) {
  return { id, email, name, roles, disabled, created_at: createdAt.toISOString() };
}

/** The reply to an access token whose session or user is gone: it takes up to a second to revoke it everywhere. */
export function sessionEnded(): HttpError<'invalid_token'> {
  return new HttpError('invalid_token', 'The session of this access token has ended.', {
    headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
  });
}
