import { type Caller, HttpError } from '@content-platform/chassis';
import type { User, UserStore } from '../user-store.ts';
import type { SessionStore } from './session-store.ts';

export type UserCaller = Extract<Caller, { kind: 'user' }>;

/** Returns the 401 for a token whose session or user was deleted: revoking it everywhere takes up to a second. */
export function sessionEnded(): HttpError<'invalid_token'> {
  return new HttpError('invalid_token', 'The session of this access token has ended.');
}

/** Returns the caller's user. Throws 401 if the user was deleted or disabled. */
export async function findCaller(users: UserStore, { id }: UserCaller): Promise<User> {
  const user = await users.findById(id);
  if (!user || user.disabled) throw sessionEnded();
  return user;
}

/** Throws 403 if the session has not proven its user in the last 15 minutes (ASVS 5.0 7.5.1). */
export async function requireRecentLogin(sessions: SessionStore, caller: Caller): Promise<void> {
  if (caller.kind === 'user' && (await sessions.isRecent(caller.id, Number(caller.sessionId)))) return;
  const message = 'Log in again, or send your password to POST /api/reauthenticate.';
  throw new HttpError('reauthentication_required', message);
}
