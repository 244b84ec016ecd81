import { Secret, TOTP } from 'otpauth';
import { randomBytes } from 'node:crypto';
import { HttpError } from '@content-platform/chassis';
import { byUser } from '../audit-store.ts';
import type { AuthContext } from '../context.ts';
import { decrypt } from '../keys/sealing.ts';
import { normalizeCode } from '../passwords/temporary-password.ts';
import { randomToken, sha256 } from '../sessions/opaque-token.ts';
import type { Stores } from '../stores.ts';
import { mfaLoginSeconds, type PendingLogin } from './mfa-store.ts';

/** RFC 6238 with the values that every authenticator app supports. */
const totpOptions = { issuer: 'Content platform', algorithm: 'SHA1', digits: 6, period: 30 } as const;

/** Returns a random secret of 160 bits (RFC 4226 §4). */
export const newTotpSecret = () => randomBytes(20);

const secretOf = (bytes: Buffer) => new Secret({ buffer: Uint8Array.from(bytes).buffer });

/** Returns the secret in base32, and the URI for a QR code. */
export function encodeTotpSecret(secret: Buffer, email: string): { secret: string; uri: string } {
  const totp = new TOTP({ ...totpOptions, label: email, secret: secretOf(secret) });
  return { secret: totp.secret.base32, uri: totp.toString() };
}

/** Returns the time step of a valid code. Accepts the previous and the next 30 s, too (RFC 6238 §5.2). `now` in ms. */
export function findTimeStep(secret: Buffer, code: string, now = Date.now()): number | undefined {
  const totp = new TOTP({ ...totpOptions, secret: secretOf(secret) });
  const delta = totp.validate({ token: code, timestamp: now, window: 1 });
  return delta === null ? undefined : Math.floor(now / 1000 / totpOptions.period) + delta;
}

/** The code of an authenticator app, or one of the recovery codes. */
export interface Proof {
  code?: string | undefined;
  recovery_code?: string | undefined;
}

/** The associated data of an encrypted TOTP secret, so that a secret cannot be moved to another user. */
export const totpContext = (userId: number) => `totp ${userId}`;

export function invalidCode(): HttpError<'invalid_code'> {
  return new HttpError('invalid_code', 'The code is wrong, expired or was used before.');
}

/** Uses up a code or recovery code; returns false if it is wrong or was used before. Call it in a transaction. */
export async function acceptProof(
  { mfa, users }: Stores,
  totpKey: Buffer,
  userId: number,
  proof: Proof,
): Promise<boolean> {
  // The deletion of a user or of a second factor locks in this order too.
  await users.lock(userId);
  const totp = await mfa.lockTotp(userId);
  if (!totp?.confirmed) return false;
  if (proof.code === undefined) {
    const code = normalizeCode(proof.recovery_code ?? '');
    return code !== undefined && mfa.useRecoveryCode(userId, sha256(code));
  }
  const step = findTimeStep(decrypt(totp.encrypted, totpKey, totpContext(userId)), proof.code);
  if (step === undefined || step <= (totp.lastStep ?? -1)) return false;
  await mfa.recordAcceptedStep(userId, step);
  return true;
}

/**
 * Time in ms for which a wrong code counts in two limits: of all networks together, and of a known network. A code has
 * six digits and three codes are valid at a time, so 100 guesses in 15 min, as for passwords, would be too many.
 */
const guessWindowMs = 86_400_000;

/** Throttles codes like passwords, with a count of their own, which a known password does not reset. Throws 429. */
export async function throttleProof<T extends { ok: boolean }>(
  { database, throttle }: Pick<AuthContext, 'database' | 'throttle'>,
  userId: number,
  address: string,
  attempt: () => Promise<T>,
): Promise<T> {
  const isKnown = (network: string) => database.sessions.isKnownNetwork(userId, network);
  const guess = { account: `mfa:${userId}`, address, isKnown, windowMs: guessWindowMs };
  const { outcome, limited } = await throttle.run(guess, attempt);
  if (!outcome.ok) {
    const details = { reason: 'wrong code' };
    await database.audit.add({ ...byUser(userId, address), event: 'mfa_failed', details });
  }
  if (limited) throw limited;
  return outcome;
}

/** Stores a login whose first factor was checked. Returns the 401 `mfa_required`: throw it after the commit. */
export async function beginMfaLogin(
  stores: Pick<Stores, 'mfa' | 'audit'>,
  login: PendingLogin,
  address: string,
) {
  const { userId, first } = login;
  const factor = 'origin' in first ? 'identity' : 'passwordHash' in first ? 'password' : 'temporary password';
  await stores.audit.add({ event: 'mfa_required', userId, address, details: { first: factor } });
  const token = randomToken();
  await stores.mfa.addLogin(sha256(token), login);
  return new HttpError('mfa_required', 'Send the code of your authenticator app to POST /api/login/mfa.', {
    details: [
      { path: 'mfa_token', message: token },
      { path: 'expires_in', message: String(mfaLoginSeconds) },
    ],
  });
}
