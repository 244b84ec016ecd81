import { type Caller, HttpError } from '@content-platform/chassis';
import type { User, UserStore } from '../user-store.ts';
import type { SessionStore } from './session-store.ts';

export type UserCaller = Extract<Caller, { kind: 'user' }>;

/** Returns the 401 for an ended session or deleted user. The token check learns of either up to a second later. */
export function sessionEnded(): HttpError<'invalid_token'> {
  return new HttpError('invalid_token', 'The session of this access token has ended.');
}

/** Returns the caller's user. Throws 401 if the user was deleted or disabled. */
export async function findCaller(users: UserStore, { id }: UserCaller): Promise<User> {
  const user = await users.findById(id);
  if (!user || user.disabled) throw sessionEnded();
  return user;
}

/** Throws 403 if the user did not log in or reauthenticate in this session in the last 15 minutes (ASVS 5.0 7.5.1). */
export async function requireRecentLogin(sessions: SessionStore, caller: Caller): Promise<void> {
  if (caller.kind === 'user' && (await sessions.isRecent(caller.id, Number(caller.sessionId)))) return;
  const message = 'Log in again, or send your password or code to POST /api/reauthenticate.';
  throw new HttpError('reauthentication_required', message);
}
