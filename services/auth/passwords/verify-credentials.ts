import type { User } from '../user-store.ts';
import type { Passwords } from './passwords.ts';
import { matchPassword, type PasswordKind } from './temporary-password.ts';

/** A failed login. `reason` is for the log and the audit log, never for the client. */
export interface Refusal {
  ok: false;
  user: User | undefined;
  reason:
    | 'unknown address'
    | 'wrong password'
    | 'disabled'
    | 'temporary password used or expired'
    | 'changed meanwhile';
}

export interface VerifiedUser {
  ok: true;
  user: User;
  kind: PasswordKind;
}

/** Checks the password of a login. For an unknown user it does the same work as for a known one. */
export async function verifyCredentials(
  passwords: Passwords,
  user: User | undefined,
  password: string,
): Promise<VerifiedUser | Refusal> {
  const kind = await matchPassword(passwords, user, password);
  if (!user) return { ok: false, user, reason: 'unknown address' };
  if (!kind) return { ok: false, user, reason: 'wrong password' };
  if (user.disabled) return { ok: false, user, reason: 'disabled' };
  return { ok: true, user, kind };
}
