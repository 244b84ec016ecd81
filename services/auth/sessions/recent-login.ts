import { type Caller, HttpError } from '@content-platform/chassis';
import type { SessionStore } from './session-store.ts';

/**
 * Throws 403 `reauthentication_required` if the caller's session has not proven its password, code or identity in the
 * last 15 minutes (ASVS 5.0 7.5.1). A stolen access token alone cannot do what this protects. Throws the errors of the
 * store.
 */
export async function requireRecentLogin(sessions: SessionStore, caller: Caller): Promise<void> {
  if (caller.kind === 'user' && (await sessions.isRecent(caller.id, Number(caller.sessionId)))) return;
  throw new HttpError(
    'reauthentication_required',
    'Log in again, or send your password to POST /api/reauthenticate.',
  );
}
