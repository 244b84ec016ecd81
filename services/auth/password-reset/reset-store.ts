import { deleteExpired, statements, type Database } from '@content-platform/chassis';

/** Time in which the link in a mail must be used. */
export const tokenMinutes = 30;
/**
 * Maximum number of mails to a user in a day. Requests from networks where the user has logged in are counted apart
 * from all others, because strangers can use up the mails for the others.
 */
const maxMailsPerDay = 5;
const longestPauseSeconds = 300;

interface NewReset {
  /** undefined: no user has the email. */
  userId: number | undefined;
  address: string;
  tokenHash: Buffer;
  encryptedToken: Buffer;
}

/** A request whose mail is to be sent. */
export interface DueMail {
  id: number;
  userId: number;
  email: string;
  /** The IP address that sent the request. */
  address: string;
  encryptedToken: Buffer;
  /** The number of this attempt, from 1. */
  attempt: number;
  /** Whether the token expires before another attempt. */
  isLast: boolean;
  /** The user logs in at an identity provider only. */
  hasNoPassword: boolean;
}

/** Must equal the expression of the index session_of_network, or PostgreSQL reads all sessions of a user: millions. */
const networkOf = (row: string) =>
  `network(set_masklen(${row}.address, CASE family(${row}.address) WHEN 4 THEN 32 ELSE 64 END))`;
/** Whether the user has logged in from the network of the request. Ended sessions are stored for 30 days. */
const isKnown = (request: string) =>
  `EXISTS (SELECT FROM auth.session
           WHERE session.user_id = ${request}.user_id AND ${networkOf('session')} = ${networkOf(request)})`;
// Other requests of the user that led to a mail, or that precede this one and come from the same kind of network (known
// or not). An earlier request from the other kind is ignored until it led to a mail: it may be refused itself.
const others = `auth.password_reset AS other WHERE other.user_id = password_reset.user_id AND (other.attempts > 0
  OR other.id < password_reset.id AND ${isKnown('other')} = ${isKnown('password_reset')})`;
/** Selects the requests for which no mail is sent. $1: `tokenMinutes`, $2: `maxMailsPerDay`. */
const isRefused = `(created_at < now() - make_interval(mins => $1)
  OR NOT EXISTS (SELECT FROM auth.user WHERE id = user_id AND NOT disabled)
  OR attempts = 0 AND EXISTS (SELECT FROM ${others} AND other.created_at > password_reset.created_at - interval '5 minutes')
  OR attempts = 0 AND (SELECT count(*) FROM ${others} AND other.created_at > password_reset.created_at - interval '1 day'
                         AND ${isKnown('other')} = ${isKnown('password_reset')}) >= $2)`;
const isDue = 'next_attempt_at <= now()';

/** Stores requests for a new password. All functions throw the errors of `query`. */
export function createResetStore(query: Database['query']) {
  const { first, run } = statements(query);
  return {
    add({ userId, address, tokenHash, encryptedToken }: NewReset) {
      const text = `INSERT INTO auth.password_reset (user_id, address, token_hash, encrypted_token)
                    VALUES ($1, $2, $3, $4)`;
      return run('add_password_reset', text, [userId ?? null, address, tokenHash, encryptedToken]);
    },

    /**
     * Deletes the due requests that are refused, then claims the mail that has been due for the longest time: defers
     * its next attempt by `pauseSeconds`, which doubles to 5 minutes. Call it in a transaction, so that simultaneous
     * requests lead to one mail.
     */
    async claim(pauseSeconds: number): Promise<DueMail | undefined> {
      await run('lock_password_resets', `SELECT pg_advisory_xact_lock(hashtext('auth.password_reset'))`);
      const limits = [tokenMinutes, maxMailsPerDay];
      const refused = `${isDue} AND ${isRefused}`;
      await deleteExpired(query, 'refuse_password_resets', 'auth.password_reset', refused, limits);
      // A request that was stored after this deletion may have to be refused too.
      const text = `UPDATE auth.password_reset SET attempts = attempts + 1,
                      next_attempt_at = now() + make_interval(secs => least($3 * 2 ^ attempts, $4))
                    FROM auth.user
                    WHERE password_reset.id = (SELECT id FROM auth.password_reset WHERE ${isDue} AND NOT ${isRefused}
                                               ORDER BY next_attempt_at LIMIT 1 FOR UPDATE SKIP LOCKED)
                      AND "user".id = user_id
                    RETURNING password_reset.id::float8 AS id, user_id::float8 AS "userId", email,
                      host(address) AS address, encrypted_token AS "encryptedToken", attempts AS attempt,
                      next_attempt_at > password_reset.created_at + make_interval(mins => $1) AS "isLast",
                      password_hash IS NULL AND coalesce(temp_password_expires_at, '-infinity') < now()
                        AND EXISTS (SELECT FROM auth.identity WHERE identity.user_id = "user".id) AS "hasNoPassword"`;
      return first<DueMail>('claim_mail', text, [...limits, pauseSeconds, longestPauseSeconds]);
    },

    /** Ends the attempts to send the mail, and forgets the token. The link stays valid. */
    finish(id: number) {
      const text = `UPDATE auth.password_reset SET encrypted_token = NULL, next_attempt_at = NULL WHERE id = $1`;
      return run('finish_mail', text, [id]);
    },

    /** Returns the user to whom a valid token was sent. */
    async findUserId(tokenHash: Buffer): Promise<number | undefined> {
      const text = `SELECT user_id::float8 AS id FROM auth.password_reset
                    WHERE token_hash = $1 AND created_at > now() - make_interval(mins => $2) AND user_id IS NOT NULL`;
      return (await first<{ id: number }>('find_password_reset', text, [tokenHash, tokenMinutes]))?.id;
    },

    /** Makes all links of the user invalid, and cancels unsent mails. Lock the user first. */
    cancelOf(userId: number) {
      const text = `UPDATE auth.password_reset SET token_hash = NULL, encrypted_token = NULL, next_attempt_at = NULL
                    WHERE user_id = $1`;
      return run('cancel_password_resets', text, [userId]);
    },
  };
}
