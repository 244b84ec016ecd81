import { deleteOld, type Database } from '@content-platform/chassis';

/** How long a client has to change its code into tokens, in seconds. */
const codeSeconds = 60;

export interface IdentityCode {
  userId: number;
  /** the client's (RFC 7636) */
  codeChallenge: string;
  /** of the identity service */
  issuer: string;
  idToken: string;
  suborgs: string[];
}

export interface PresentedCode extends IdentityCode {
  state: 'valid' | 'expired' | 'reused';
  /** what its first use has opened */
  sessionId: number | undefined;
}

/** One-time codes, known by their SHA-256. Everything throws what `query` throws. */
export function createIdentityCodeStore(query: Database['query']) {
  return {
    async add(
      hash: Buffer,
      { userId, codeChallenge, issuer, idToken, suborgs }: IdentityCode,
    ): Promise<void> {
      const text = `INSERT INTO auth.identity_code (hash, user_id, code_challenge, issuer, id_token, suborgs)
                    VALUES ($1, $2, $3, $4, $5, $6)`;
      await query('add_identity_code', text, [hash, userId, codeChallenge, issuer, idToken, suborgs]);
    },

    /** Looks a code up and locks it until the transaction ends. */
    async present(hash: Buffer): Promise<PresentedCode | undefined> {
      // The user first, as who deletes one does: the other way round the two would wait for each other.
      const user =
        'SELECT FROM auth.user WHERE id = (SELECT user_id FROM auth.identity_code WHERE hash = $1) FOR UPDATE';
      await query('lock_user_of_code', user, [hash]);
      const text = `SELECT user_id, code_challenge AS "codeChallenge", issuer, id_token AS "idToken", suborgs, session_id,
          CASE WHEN used_at IS NOT NULL THEN 'reused'
               WHEN created_at < now() - make_interval(secs => $2) THEN 'expired'
               ELSE 'valid' END AS state
        FROM auth.identity_code WHERE hash = $1 FOR UPDATE`;
      type Row = Omit<PresentedCode, 'userId' | 'sessionId'> & { user_id: string; session_id: string | null };
      const { rows } = await query<Row>('present_identity_code', text, [hash, codeSeconds]);
      if (!rows[0]) return undefined;
      const { user_id, session_id, ...row } = rows[0];
      return {
        ...row,
        userId: Number(user_id),
        sessionId: session_id === null ? undefined : Number(session_id),
      };
    },

    /** From now on it is a used one, and `sessionId` is what a further use ends. */
    async use(hash: Buffer, sessionId?: number): Promise<void> {
      const text = 'UPDATE auth.identity_code SET used_at = now(), session_id = $2 WHERE hash = $1';
      await query('use_identity_code', text, [hash, sessionId ?? null]);
    },

    async delete(hash: Buffer): Promise<void> {
      await query('delete_identity_code', 'DELETE FROM auth.identity_code WHERE hash = $1', [hash]);
    },

    /** Deletes the old ones. For a day a used one that comes again still ends its session. */
    async forget(): Promise<void> {
      const old = `created_at < now() - interval '1 day'`;
      await deleteOld(query, 'delete_identity_codes', 'auth.identity_code', old);
    },
  };
}
