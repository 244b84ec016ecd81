import { statements, type Database } from '@content-platform/chassis';
import type { SessionOrigin } from '../sessions/session-store.ts';
import type { Person } from './person.ts';

/** A subject at an identity provider (OpenID Connect Core §5.7). */
interface Subject {
  issuer: string;
  subject: string;
}

/** An identity of a user, with the email of the latest login. */
export interface LinkedIdentity extends Subject {
  id: number;
  /** null: the provider returned no usable email, or no login since the release that added the column. */
  email: string | null;
  /** null: no login since that release. */
  emailVerified: boolean | null;
}

const columns = 'id::float8 AS id, issuer, subject, email, email_verified AS "emailVerified"';

/** Stores which user belongs to each subject. Use it in transactions. All functions throw the errors of `query`. */
export function createIdentityStore(query: Database['query']) {
  const { rows, first, affects, run } = statements(query);
  return {
    /** Makes concurrent logins of the subject wait until the transaction ends; they would create a user each. */
    lock({ issuer, subject }: Subject) {
      const text = 'SELECT pg_advisory_xact_lock(hashtextextended($1, 0))';
      return run('lock_identity', text, [JSON.stringify([issuer, subject])]);
    },

    async findUserId({ issuer, subject }: Subject): Promise<number | undefined> {
      const text = 'SELECT user_id::float8 AS id FROM auth.identity WHERE issuer = $1 AND subject = $2';
      return (await first<{ id: number }>('find_identity', text, [issuer, subject]))?.id;
    },

    /** Returns false if the user is already linked to another subject of this provider. */
    link({ issuer, subject }: Subject, userId: number) {
      const text = `INSERT INTO auth.identity (issuer, subject, user_id) VALUES ($1, $2, $3)
                    ON CONFLICT (user_id, issuer) DO NOTHING`;
      return affects('add_identity', text, [issuer, subject, userId]);
    },

    /** Stores the email of a login, and whether the provider verified it. */
    updateEmail({ issuer, subject, email, emailVerified }: Person) {
      const text = `UPDATE auth.identity SET email = $3, email_verified = $4 WHERE issuer = $1 AND subject = $2`;
      return run('note_identity_email', text, [issuer, subject, email ?? null, emailVerified]);
    },

    list(userId: number) {
      const text = `SELECT ${columns} FROM auth.identity WHERE user_id = $1 ORDER BY identity.id`;
      return rows<LinkedIdentity>('list_identities', text, [userId]);
    },

    /** Returns the identities whose email no login has shown to be verified. */
    listUnverified() {
      const text = `SELECT ${columns}, user_id::float8 AS "userId",
                      (SELECT "user".email FROM auth.user WHERE "user".id = user_id) AS "userEmail"
                    FROM auth.identity WHERE email_verified IS NOT TRUE ORDER BY user_id`;
      return rows<LinkedIdentity & { userId: number; userEmail: string }>('list_unverified', text);
    },

    /** Removes a link of the user and returns its issuer; undefined if there is no such link. */
    async unlink(userId: number, id: number): Promise<string | undefined> {
      const text = 'DELETE FROM auth.identity WHERE user_id = $1 AND id = $2 RETURNING issuer';
      return (await first<{ issuer: string }>('delete_identity', text, [userId, id]))?.issuer;
    },

    /** Remembers a logout token by its hash; returns false if it was used before. */
    useLogoutToken: (hash: Buffer) =>
      affects('use_logout_token', 'INSERT INTO auth.logout_token (hash) VALUES ($1) ON CONFLICT DO NOTHING', [
        hash,
      ]),

    unlinkAll: (userId: number) =>
      run('delete_identities', 'DELETE FROM auth.identity WHERE user_id = $1', [userId]),
  };
}

/** Time in which a user must log in at the identity provider. */
export const loginSeconds = 600;

/** A login in progress at the identity provider. */
export interface IdentityLogin {
  browserHash: Buffer;
  nonce: string;
  /** PKCE verifier of the platform, for the code of the identity provider. */
  codeVerifier: string;
  returnTo: string;
  clientState: string;
  /** PKCE challenge of the app, for the code of the platform (`IdentityCode`). */
  codeChallenge: string;
}

/** Stores logins in progress by the SHA-256 of their state. All functions throw the errors of `query`. */
export function createIdentityLoginStore(query: Database['query']) {
  const { first, run } = statements(query);
  return {
    add(stateHash: Buffer, login: IdentityLogin) {
      const { browserHash, nonce, codeVerifier, returnTo, clientState, codeChallenge } = login;
      const text = `INSERT INTO auth.identity_login
          (state_hash, browser_hash, nonce, code_verifier, return_to, client_state, code_challenge)
        VALUES ($1, $2, $3, $4, $5, $6, $7)`;
      const values = [stateHash, browserHash, nonce, codeVerifier, returnTo, clientState, codeChallenge];
      return run('begin_identity_login', text, values);
    },

    /** Removes and returns the login of this state; undefined if there is none. */
    consume(stateHash: Buffer) {
      const text = `DELETE FROM auth.identity_login WHERE state_hash = $1
        RETURNING browser_hash AS "browserHash", nonce, code_verifier AS "codeVerifier", return_to AS "returnTo",
          client_state AS "clientState", code_challenge AS "codeChallenge",
          created_at < now() - make_interval(secs => $2) AS expired`;
      const values = [stateHash, loginSeconds];
      return first<IdentityLogin & { expired: boolean }>('take_identity_login', text, values);
    },
  };
}

/** Time in which a client must exchange its code for tokens. */
const codeSeconds = 60;

interface IdentityCode extends SessionOrigin {
  userId: number;
  /** PKCE challenge of the app (RFC 7636). */
  codeChallenge: string;
  /** Whether the provider checked a second factor. */
  mfa: boolean;
}

export interface FoundCode extends IdentityCode {
  state: 'valid' | 'expired' | 'reused';
  /** The session that the first use of the code opened. */
  sessionId: number | null;
}

/** Stores one-time codes by their SHA-256. All functions throw the errors of `query`. */
export function createIdentityCodeStore(query: Database['query']) {
  const { first, run } = statements(query);
  return {
    add(hash: Buffer, { userId, codeChallenge, issuer, idToken, suborgs, mfa }: IdentityCode) {
      const text = `INSERT INTO auth.identity_code (hash, user_id, code_challenge, issuer, id_token, suborgs, mfa)
                    VALUES ($1, $2, $3, $4, $5, $6, $7)`;
      return run('add_identity_code', text, [hash, userId, codeChallenge, issuer, idToken, suborgs, mfa]);
    },

    /** Looks up a code and locks it until the transaction ends. */
    async findAndLock(hash: Buffer): Promise<FoundCode | undefined> {
      // Deleting a user locks the user first, too; the opposite order here would deadlock.
      const user =
        'SELECT FROM auth.user WHERE id = (SELECT user_id FROM auth.identity_code WHERE hash = $1) FOR UPDATE';
      await run('lock_user_of_code', user, [hash]);
      const text = `SELECT user_id::float8 AS "userId", code_challenge AS "codeChallenge", issuer,
          id_token AS "idToken", suborgs, mfa, session_id::float8 AS "sessionId",
          CASE WHEN used_at IS NOT NULL THEN 'reused'
               WHEN created_at < now() - make_interval(secs => $2) THEN 'expired'
               ELSE 'valid' END AS state
        FROM auth.identity_code WHERE hash = $1 FOR UPDATE`;
      return first<FoundCode>('present_identity_code', text, [hash, codeSeconds]);
    },

    /** Marks the code as used and deletes its ID token. A second use ends the session `sessionId`; without it, none. */
    markUsed(hash: Buffer, sessionId?: number) {
      const text = `UPDATE auth.identity_code SET used_at = now(), session_id = $2, id_token = '' WHERE hash = $1`;
      return run('use_identity_code', text, [hash, sessionId ?? null]);
    },

    /** Deletes the codes of a user, so that a login in progress cannot open a session. */
    deleteOf: (userId: number) =>
      run('delete_identity_codes', 'DELETE FROM auth.identity_code WHERE user_id = $1', [userId]),

    delete: (hash: Buffer) =>
      run('delete_identity_code', 'DELETE FROM auth.identity_code WHERE hash = $1', [hash]),
  };
}
