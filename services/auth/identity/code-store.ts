import { statements, type Database } from '@content-platform/chassis';

/** Time in which a client must exchange its code for tokens. */
const codeSeconds = 60;

interface IdentityCode {
  userId: number;
  /** The client's challenge (RFC 7636). */
  codeChallenge: string;
  issuer: string;
  idToken: string;
  suborgs: string[];
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

    /** Marks the code as used; using it again ends the session `sessionId`. */
    markUsed(hash: Buffer, sessionId?: number) {
      const text = 'UPDATE auth.identity_code SET used_at = now(), session_id = $2 WHERE hash = $1';
      return run('use_identity_code', text, [hash, sessionId ?? null]);
    },

    /** Deletes the codes of a user, so that a login in progress cannot open a session. */
    deleteOf: (userId: number) =>
      run('delete_identity_codes', 'DELETE FROM auth.identity_code WHERE user_id = $1', [userId]),

    delete: (hash: Buffer) =>
      run('delete_identity_code', 'DELETE FROM auth.identity_code WHERE hash = $1', [hash]),
  };
}
