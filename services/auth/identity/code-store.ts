import { deleteExpired, type Database } from '@content-platform/chassis';

/** How long a client may take to exchange its code for tokens. */
const codeSeconds = 60;

export interface IdentityCode {
  userId: number;
  /** Of the client (RFC 7636). */
  codeChallenge: string;
  issuer: string;
  idToken: string;
  suborgs: string[];
}

export interface PresentedCode extends IdentityCode {
  state: 'valid' | 'expired' | 'reused';
  /** The session that its first use opened. */
  sessionId: number | null;
}

/** One-time codes, of which the table has the SHA-256. Everything throws what `query` throws. */
export function createIdentityCodeStore(query: Database['query']) {
  return {
    async add(hash: Buffer, code: IdentityCode): Promise<void> {
      const { userId, codeChallenge, issuer, idToken, suborgs } = code;
      const text = `INSERT INTO auth.identity_code (hash, user_id, code_challenge, issuer, id_token, suborgs)
                    VALUES ($1, $2, $3, $4, $5, $6)`;
      await query('add_identity_code', text, [hash, userId, codeChallenge, issuer, idToken, suborgs]);
    },

    /** Looks up a code and locks it until the transaction ends. */
    async present(hash: Buffer): Promise<PresentedCode | undefined> {
      // The user is locked first, as in the deletion of a user: in the other order both would wait for each other.
      const user =
        'SELECT FROM auth.user WHERE id = (SELECT user_id FROM auth.identity_code WHERE hash = $1) FOR UPDATE';
      await query('lock_user_of_code', user, [hash]);
      const text = `SELECT user_id::float8 AS "userId", code_challenge AS "codeChallenge", issuer,
          id_token AS "idToken", suborgs, session_id::float8 AS "sessionId",
          CASE WHEN used_at IS NOT NULL THEN 'reused'
               WHEN created_at < now() - make_interval(secs => $2) THEN 'expired'
               ELSE 'valid' END AS state
        FROM auth.identity_code WHERE hash = $1 FOR UPDATE`;
      return (await query<PresentedCode>('present_identity_code', text, [hash, codeSeconds])).rows[0];
    },

    /** Marks the code as used; using it again ends the session `sessionId`. */
    async use(hash: Buffer, sessionId?: number): Promise<void> {
      const text = 'UPDATE auth.identity_code SET used_at = now(), session_id = $2 WHERE hash = $1';
      await query('use_identity_code', text, [hash, sessionId ?? null]);
    },

    async delete(hash: Buffer): Promise<void> {
      await query('delete_identity_code', 'DELETE FROM auth.identity_code WHERE hash = $1', [hash]);
    },

    /** Deletes codes that are older than a day. Until then presenting a used code again ends its session. */
    async deleteExpired(): Promise<void> {
      const old = `created_at < now() - interval '1 day'`;
      await deleteExpired(query, 'delete_identity_codes', 'auth.identity_code', old);
    },
  };
}
