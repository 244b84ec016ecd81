import { decodeJwt } from 'jose';
import { deleteExpired, runInBatches, statements, type Database } from '@content-platform/chassis';
import { createRevocationStore } from './revocation-store.ts';

export interface Session {
  id: number;
  device: string;
  address: string;
  createdAt: Date;
  lastUsedAt: Date;
  active: boolean;
}

/** The login at the identity provider that opened a session. `suborgs`: parts of the organisation to choose from. */
export interface SessionOrigin {
  issuer: string;
  idToken: string;
  suborgs: string[];
}

export interface NewSession {
  userId: number;
  device: string;
  address: string;
  mustChangePassword: boolean;
  /** Default and maximum: 90 days from now. */
  endsAt?: Date | undefined;
  origin?: SessionOrigin | undefined;
}

export interface FoundToken {
  sessionId: number;
  userId: number;
  mustChangePassword: boolean;
  /** `reused`: replaced too long ago for a lost reply to explain the use. */
  state: 'valid' | 'expired' | 'revoked' | 'reused';
  /** Whether the table contains its successor. */
  replaced: boolean;
}

/** NIST SP 800-63B-4 §2.2.3 requires both limits; the platform chose the values. */
const lifetimeDays = { idle: 30, total: 90 };
/** How long a login counts as recent. */
const recentSeconds = 15 * 60;
/** Time in which a replaced refresh token still leads to its successor. */
const graceSeconds = 10;
/** Deletes 15 in 16 tokens; `findDeleted` needs the rest. Must equal the condition of index refresh_token_replaced. */
const deletable = 'get_byte(hash, 0) >= 16';
/** Maximum number of steps from a deleted token to a kept one. One chain in 15 million is longer. */
export const maxChainSteps = 256;
/** Live sessions of a user; a new one ends the least recently used one (ASVS 5.0 7.1.2). */
const maxSessions = 100;

/**
 * When a session is over. A session of an identity provider counts until `ends_at` even if it ended earlier, because
 * `originOf` reads the suborgs from the newest one. Must equal the expression of the index session_over.
 */
const overSince = 'least(ends_at, CASE WHEN identity_issuer IS NULL THEN ended_at END)';

/** Returns the `sid` of a verified ID token; null: there is none. */
function sidOf(idToken: string): string | null {
  try {
    const { sid } = decodeJwt(idToken);
    return typeof sid === 'string' ? sid : null;
  } catch {
    return null;
  }
}

export type SessionStore = ReturnType<typeof createSessionStore>;

/** Stores sessions, and refresh tokens by their SHA-256. All functions throw the errors of `query`. */
export function createSessionStore(query: Database['query']) {
  const { rows, first, affects, run } = statements(query);
  const revocations = createRevocationStore(query);
  /** Selects the session $2 of the user $1 if it is live. */
  const liveSession = 'user_id = $1 AND id = $2 AND ended_at IS NULL AND ends_at > now()';

  /**
   * Ends the users' sessions that match `condition`: $1 is the user ids, `values` begin at $2. Deletes their ID tokens.
   * Locks all of them before it locks the revocations. Returns false if no session matched.
   */
  async function end(userIds: number | readonly number[], condition: string, ...values: unknown[]) {
    const text = `UPDATE auth.session SET ended_at = now(), id_token = left(id_token, 0)
                  WHERE user_id = ANY ($1) AND ended_at IS NULL AND ${condition} RETURNING id::float8 AS id`;
    const ended = await rows<{ id: number }>('end_sessions', text, [[userIds].flat(), ...values]);
    await revocations.add({ sessions: ended.map(({ id }) => id) });
    return ended.length > 0;
  }

  return {
    /** Stores a session with its first refresh token; returns its id. Ends surplus ones. Call it in a transaction. */
    async add(session: NewSession, refreshTokenHash: Buffer): Promise<number> {
      const { userId, device, address, mustChangePassword, endsAt = null } = session;
      const origin: Partial<SessionOrigin> = session.origin ?? {};
      const { issuer = null, idToken = null, suborgs = null } = origin;
      const text = `INSERT INTO auth.session
                      (user_id, device, address, must_change_password, ends_at, identity_issuer, id_token, suborgs, identity_sid)
                    VALUES ($1, $2, $3, $4, least($5, now() + make_interval(days => $6)), $7, $8, $9, $10) RETURNING id::float8 AS id`;
      const identity = [issuer, idToken, suborgs, idToken && sidOf(idToken)];
      const values = [userId, device, address, mustChangePassword, endsAt, lifetimeDays.total, ...identity];
      const { id } = (await first<{ id: number }>('open_session', text, values))!;
      await this.addToken(id, refreshTokenHash);
      const surplus = `id IN (SELECT id FROM auth.session WHERE user_id = ANY ($1) AND ended_at IS NULL
                              ORDER BY last_used_at DESC, id DESC OFFSET $2)`;
      await end(userId, surplus, maxSessions);
      return id;
    },

    addToken(sessionId: number, hash: Buffer) {
      const text = `INSERT INTO auth.refresh_token (hash, session_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`;
      return run('add_refresh_token', text, [hash, sessionId]);
    },

    /** Looks up a refresh token and locks its session until the transaction ends. */
    async findAndLock(hash: Buffer): Promise<FoundToken | undefined> {
      // A separate statement, because a statement that waited for a lock would read the tokens as before the wait.
      const text = `SELECT FROM auth.session
                    WHERE id = (SELECT session_id FROM auth.refresh_token WHERE hash = $1) FOR NO KEY UPDATE`;
      await run('lock_session_of_token', text, [hash]);
      return this.find(hash);
    },

    find(hash: Buffer) {
      const text = `SELECT session.id::float8 AS "sessionId", user_id::float8 AS "userId",
          must_change_password AS "mustChangePassword", replaced_at IS NOT NULL AS replaced,
          CASE WHEN ended_at IS NOT NULL THEN 'revoked'
               WHEN ends_at < now() THEN 'expired'
               WHEN replaced_at < now() - make_interval(secs => $2) THEN 'reused'
               WHEN token.created_at < now() - make_interval(days => $3) THEN 'expired'
               ELSE 'valid' END AS state
        FROM auth.refresh_token AS token JOIN auth.session ON session.id = session_id
        WHERE hash = $1`;
      const values = [hash, graceSeconds, lifetimeDays.idle];
      return first<FoundToken>('find_refresh_token', text, values);
    },

    /** Returns one of these hashes that the table contains. */
    async findAny(hashes: readonly Buffer[]): Promise<Buffer | undefined> {
      const text = 'SELECT hash FROM auth.refresh_token WHERE hash = ANY ($1) LIMIT 1';
      return (await first<{ hash: Buffer }>('find_refresh_tokens', text, [hashes]))?.hash;
    },

    async replace(sessionId: number, hash: Buffer, successor: Buffer): Promise<void> {
      const text = 'UPDATE auth.refresh_token SET replaced_at = clock_timestamp() WHERE hash = $1';
      await run('replace_refresh_token', text, [hash]);
      await this.addToken(sessionId, successor);
      await run('use_session', 'UPDATE auth.session SET last_used_at = now() WHERE id = $1', [sessionId]);
    },

    /** Returns the live sessions, or all that are stored, newest first, with ids below `before`. */
    list(userId: number, before: number | undefined, limit: number, which: 'live' | 'all' = 'live') {
      const live = `ended_at IS NULL AND ends_at > now() AND last_used_at > now() - make_interval(days => $4)`;
      const text = `SELECT id::float8 AS id, device, host(address) AS address, created_at AS "createdAt",
                      last_used_at AS "lastUsedAt", ${live} AS active
                    FROM auth.session
                    WHERE user_id = $1 AND (${which === 'all'} OR ${live}) AND ($2::bigint IS NULL OR id < $2)
                    ORDER BY session.id DESC LIMIT $3`;
      const values = [userId, before ?? null, limit, lifetimeDays.idle];
      return rows<Session>('list_sessions', text, values);
    },

    /** Returns the login at the identity provider that opened the session; undefined for a login with a password. */
    originOf(userId: number, id: number) {
      // The suborgs of the newest login, because the provider may have withdrawn older ones.
      const text = `SELECT identity_issuer AS issuer, id_token AS "idToken",
                      (SELECT latest.suborgs FROM auth.session AS latest
                       WHERE latest.user_id = $1 AND latest.identity_issuer = session.identity_issuer
                       ORDER BY latest.id DESC LIMIT 1) AS suborgs
                    FROM auth.session
                    WHERE user_id = $1 AND id = $2 AND identity_issuer IS NOT NULL`;
      return first<SessionOrigin>('find_session_origin', text, [userId, id]);
    },

    /** Returns whether a live session of the user was opened from this network (CIDR). */
    isKnownNetwork(userId: number, network: string) {
      const text = `SELECT FROM auth.session
                    WHERE user_id = $1 AND address <<= $2 AND ended_at IS NULL AND ends_at > now() LIMIT 1`;
      return affects('find_session_of_network', text, [userId, network]);
    },

    isLive: (userId: number, id: number) =>
      affects('find_live_session', `SELECT FROM auth.session WHERE ${liveSession}`, [userId, id]),

    /** Returns whether the session is live and its user logged in or reauthenticated in the last 15 minutes. */
    isRecent(userId: number, id: number) {
      const text = `SELECT FROM auth.session WHERE ${liveSession}
                      AND greatest(created_at, reauthenticated_at) > now() - make_interval(secs => $3)`;
      return affects('find_recent_session', text, [userId, id, recentSeconds]);
    },

    /** Makes the session a recent login; returns false if it has ended. */
    markRecent(userId: number, id: number) {
      const text = `UPDATE auth.session SET reauthenticated_at = now() WHERE ${liveSession}`;
      return affects('reauthenticate_session', text, [userId, id]);
    },

    /** Ends all sessions without revoking access tokens: replace the signing keys afterwards. Returns their number. */
    async endAllUsers(): Promise<number> {
      // For services that keep data of a session. Dated back, so that services that only check tokens skip the rows.
      // Locks the revocations after all sessions, as `end` does.
      const text = `WITH ended AS (UPDATE auth.session SET ended_at = now(), id_token = left(id_token, 0) WHERE id = ANY (ARRAY(
                      SELECT id FROM auth.session WHERE ended_at IS NULL AND ends_at > now() LIMIT 10000 FOR UPDATE))
                      RETURNING id),
                    locked AS (SELECT pg_advisory_xact_lock(hashtext('auth.revocation') + 0 * count(*)) FROM ended)
                    INSERT INTO auth.revocation (session_id, at)
                    SELECT id, now() - interval '1 hour' FROM ended, locked`;
      return runInBatches(query, 'end_all_sessions', text, [], 10_000);
    },

    /** Returns false if the user has no such session. Call late in a transaction: it locks the revocations. */
    endOne: (userId: number, id: number) => end(userId, 'id = $2', id),

    /** Call late in a transaction: it locks the revocations. */
    endAll: (userId: number) => end(userId, 'true'),

    /**
     * Deletes all refresh tokens and the ended sessions in batches. There may be millions, too many for the statement
     * that deletes the user. Locks the live sessions before the tokens, as a refresh does, so that neither deadlocks.
     */
    async deleteTokensAndEnded(userId: number): Promise<void> {
      const live = 'SELECT FROM auth.session WHERE user_id = $1 AND ended_at IS NULL FOR UPDATE';
      await run('lock_live_sessions', live, [userId]);
      const tokens = 'session_id IN (SELECT id FROM auth.session WHERE user_id = $1)';
      await deleteExpired(query, 'erase_refresh_tokens', 'auth.refresh_token', tokens, [userId], 100_000);
      const ended = 'user_id = $1 AND ended_at IS NOT NULL';
      await deleteExpired(query, 'erase_sessions', 'auth.session', ended, [userId]);
    },

    /** Returns the users with live sessions or unfinished logins that the provider's session `sid` opened. */
    async usersOfIdentitySession(issuer: string, sid: string | undefined): Promise<number[]> {
      const text = `SELECT user_id::float8 AS id, NULL AS "idToken" FROM auth.session
                    WHERE identity_issuer = $1 AND identity_sid = $2 AND ended_at IS NULL
                    UNION SELECT user_id::float8, id_token FROM auth.identity_code
                    WHERE issuer = $1 AND used_at IS NULL AND created_at > now() - interval '5 minutes'
                    UNION SELECT user_id::float8, id_token FROM auth.mfa_login WHERE identity_issuer = $1`;
      type Row = { id: number; idToken: string | null };
      const found = await rows<Row>('find_identity_sessions', text, [issuer, sid ?? null]);
      // The query selects sessions by their sid. Of unfinished logins, only the ID token has it.
      const opened = found.filter(({ idToken }) => idToken === null || sidOf(idToken) === sid);
      return [...new Set(opened.map(({ id }) => id))];
    },

    /** Ends the users' sessions of this provider whose `sid` is this one or is not stored; without `sid`, all. */
    endOfIdentity(userIds: readonly number[], issuer: string, sid: string | undefined) {
      const ofSid = '($3::text IS NULL OR identity_sid IS NULL OR identity_sid = $3)';
      return end(userIds, `identity_issuer = $2 AND ${ofSid}`, issuer, sid ?? null);
    },

    /** Ends sessions that began with a temporary password. */
    endTemporary: (userId: number) => end(userId, 'must_change_password'),

    /** Deletes sessions whose refresh tokens would have expired, and most tokens that were replaced over a day ago. */
    async deleteExpired(): Promise<void> {
      const replaced = `replaced_at < now() - interval '1 day' AND ${deletable}`;
      await deleteExpired(query, 'delete_replaced_tokens', 'auth.refresh_token', replaced);
      // Handles 1,000 sessions at a time: a month after `endAllUsers`, a search in millions takes too long. Deletes
      // their tokens first: a session can have thousands, and deleting it would delete all of them in one statement.
      const oldest = `SELECT id FROM auth.session WHERE ${overSince} < now() - make_interval(days => $1)
                      ORDER BY ${overSince} LIMIT 1000`;
      const tokens = `session_id IN (${oldest})`;
      const locked = `SELECT id FROM auth.session WHERE id IN (${oldest}) FOR UPDATE SKIP LOCKED`;
      const remove = `DELETE FROM auth.session WHERE id = ANY (ARRAY(${locked}))`;
      do
        await deleteExpired(query, 'delete_refresh_tokens', 'auth.refresh_token', tokens, [
          lifetimeDays.idle,
        ]);
      while ((await query('delete_sessions', remove, [lifetimeDays.idle])).rowCount === 1_000);
    },
  };
}
