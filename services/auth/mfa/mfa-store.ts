import { statements, type Database } from '@content-platform/chassis';
import type { SessionOrigin } from '../sessions/session-store.ts';

interface StoredTotp {
  encrypted: Buffer;
  confirmed: boolean;
  lastStep: number | null;
}

/** The stored value that matched the first factor of a login. */
export type FirstFactor = { passwordHash: string } | { tempPasswordHash: string } | { origin: SessionOrigin };

export interface PendingLogin {
  userId: number;
  first: FirstFactor;
}

/** Time in which a login must be completed with the second factor. */
export const mfaLoginSeconds = 300;

/** Stores second factors, and logins that wait for one. All functions throw the errors of `query`. */
export function createMfaStore(query: Database['query']) {
  const { first, affects, run } = statements(query);
  return {
    /** Stores a secret that is not confirmed yet; returns false if the user has a confirmed one. */
    beginTotp(userId: number, encrypted: Buffer) {
      const text = `INSERT INTO auth.totp (user_id, encrypted_secret) VALUES ($1, $2)
                    ON CONFLICT (user_id) DO UPDATE SET encrypted_secret = excluded.encrypted_secret
                    WHERE totp.confirmed_at IS NULL`;
      return affects('begin_totp', text, [userId, encrypted]);
    },

    /** Returns the user's secret and locks it until the transaction ends. */
    lockTotp(userId: number) {
      const text = `SELECT encrypted_secret AS encrypted, confirmed_at IS NOT NULL AS confirmed,
                      last_step::float8 AS "lastStep"
                    FROM auth.totp WHERE user_id = $1 FOR UPDATE`;
      return first<StoredTotp>('lock_totp', text, [userId]);
    },

    /** Stores the time step of an accepted code. This also confirms the secret. */
    recordAcceptedStep(userId: number, step: number) {
      const text = `UPDATE auth.totp SET last_step = $2, confirmed_at = coalesce(confirmed_at, now())
                    WHERE user_id = $1`;
      return run('accept_totp', text, [userId, step]);
    },

    addRecoveryCodes(userId: number, hashes: readonly Buffer[]) {
      const text = 'INSERT INTO auth.recovery_code (user_id, hash) SELECT $1, unnest($2::bytea[])';
      return run('add_recovery_codes', text, [userId, hashes]);
    },

    /** Uses up a recovery code; returns false if the user has no such code. */
    useRecoveryCode(userId: number, hash: Buffer) {
      const text = 'DELETE FROM auth.recovery_code WHERE user_id = $1 AND hash = $2';
      return affects('use_recovery_code', text, [userId, hash]);
    },

    /** Removes the second factor with its recovery codes; returns false if there is none. */
    remove: (userId: number) => affects('delete_totp', 'DELETE FROM auth.totp WHERE user_id = $1', [userId]),

    async addLogin(tokenHash: Buffer, { userId, first: factor }: PendingLogin): Promise<void> {
      const passwordHash = 'passwordHash' in factor ? factor.passwordHash : null;
      const tempPasswordHash = 'tempPasswordHash' in factor ? factor.tempPasswordHash : null;
      const origin: Partial<SessionOrigin> = 'origin' in factor ? factor.origin : {};
      const { issuer = null, idToken = null, suborgs = null } = origin;
      const text = `INSERT INTO auth.mfa_login
                      (token_hash, user_id, password_hash, temp_password_hash, identity_issuer, id_token, suborgs)
                    VALUES ($1, $2, $3, $4, $5, $6, $7)`;
      const values = [tokenHash, userId, passwordHash, tempPasswordHash, issuer, idToken, suborgs];
      await run('add_mfa_login', text, values);
    },

    /** Returns the login if it has not expired. */
    findLogin(tokenHash: Buffer) {
      const text = `SELECT user_id::float8 AS "userId", CASE
                      WHEN password_hash IS NOT NULL THEN json_build_object('passwordHash', password_hash)
                      WHEN temp_password_hash IS NOT NULL THEN json_build_object('tempPasswordHash', temp_password_hash)
                      ELSE json_build_object('origin', json_build_object(
                        'issuer', identity_issuer, 'idToken', id_token, 'suborgs', suborgs)) END AS first
                    FROM auth.mfa_login WHERE token_hash = $1 AND created_at > now() - make_interval(secs => $2)`;
      return first<PendingLogin>('find_mfa_login', text, [tokenHash, mfaLoginSeconds]);
    },

    deleteLoginsOf: (userId: number) =>
      run('delete_mfa_logins_of_user', 'DELETE FROM auth.mfa_login WHERE user_id = $1', [userId]),

    deleteIdentityLoginsOf(userId: number) {
      const text = 'DELETE FROM auth.mfa_login WHERE user_id = $1 AND identity_issuer IS NOT NULL';
      return run('delete_identity_mfa_logins', text, [userId]);
    },

    /** Returns false if the login was completed meanwhile. */
    deleteLogin: (tokenHash: Buffer) =>
      affects('delete_mfa_login', 'DELETE FROM auth.mfa_login WHERE token_hash = $1', [tokenHash]),
  };
}
