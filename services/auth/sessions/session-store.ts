import { deleteOld, type Database } from '@content-platform/chassis';
import { revoke } from './revocations.ts';

export interface Session {
  id: number;
  device: string;
  address: string;
  createdAt: Date;
  lastUsedAt: Date;
}

/** The login at the identity service that a session came from. */
export interface SessionOrigin {
  issuer: string;
  idToken: string;
  /** the parts of the organisation that the person may choose from */
  suborgs: string[];
}

export interface NewSession {
  userId: number;
  device: string;
  address: string;
  mustChangePassword: boolean;
  /** no later than 90 days from now */
  endsAt?: Date | undefined;
  origin?: SessionOrigin | undefined;
}

/** What a presented refresh token is. `reused`: it was replaced longer ago than a lost answer explains. */
export type RefreshTokenState = 'valid' | 'expired' | 'revoked' | 'reused';

export interface PresentedToken {
  sessionId: number;
  userId: number;
  mustChangePassword: boolean;
  state: RefreshTokenState;
  /** its successor is there already */
  replaced: boolean;
}

/** Days. NIST SP 800-63B-4 §2.2.3 asks for limits on both; these are the platform's own. */
const lifetime = { idle: 30, total: 90 };
/** How long a replaced refresh token still leads to its successor, in seconds. */
const graceSeconds = 10;
/** Live sessions a person can have; one more ends the one unused for longest (ASVS 5.0 7.1.2). */
const maxSessions = 100;

/**
 * As the index session_over has it. One from the identity service stays as long as it could have lived: the newest tells
 * what the person may choose from, also when it was ended.
 */
const overSince = 'least(ends_at, CASE WHEN identity_issuer IS NULL THEN ended_at END)';

export type SessionStore = ReturnType<typeof createSessionStore>;

/** Sessions and their refresh tokens, which are known by their SHA-256. Everything throws what `query` throws. */
export function createSessionStore(query: Database['query']) {
  /** Those of `userId` that are not among the newest, or all of them, or one. Returns whether there was any. */
  async function end(userId: number, condition: string, ...values: unknown[]): Promise<boolean> {
    const text = `UPDATE auth.session SET ended_at = now()
                  WHERE user_id = $1 AND ended_at IS NULL AND ${condition} RETURNING id`;
    const { rows } = await query<{ id: string }>('end_sessions', text, [userId, ...values]);
    await revoke(query, { sessions: rows.map(({ id }) => Number(id)) });
    return rows.length > 0;
  }

  return {
    /** Opens a session with its first refresh token; returns its id. In a transaction. */
    async open(session: NewSession, refreshTokenHash: Buffer): Promise<number> {
      const { userId, device, address, mustChangePassword, endsAt, origin } = session;
      const text = `INSERT INTO auth.session
                      (user_id, device, address, must_change_password, ends_at, identity_issuer, id_token, suborgs)
                    VALUES ($1, $2, $3, $4, least($5, now() + make_interval(days => $6)), $7, $8, $9) RETURNING id`;
      const values = [
        userId,
        device,
        address,
        mustChangePassword,
        endsAt ?? null,
        lifetime.total,
        origin?.issuer ?? null,
        origin?.idToken ?? null,
        origin?.suborgs ?? null,
      ];
      const { rows } = await query<{ id: string }>('open_session', text, values);
      const id = Number(rows[0]!.id);
      await this.addToken(id, refreshTokenHash);
      await end(
        userId,
        `id IN (SELECT id FROM auth.session WHERE user_id = $1 AND ended_at IS NULL
                ORDER BY last_used_at DESC, id DESC OFFSET $2)`,
        maxSessions,
      );
      return id;
    },

    /** Nothing happens when it is there already. */
    async addToken(sessionId: number, hash: Buffer): Promise<void> {
      const text = `INSERT INTO auth.refresh_token (hash, session_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`;
      await query('add_refresh_token', text, [hash, sessionId]);
    },

    /**
     * Looks a refresh token up, whose session and chain stay as they are until the transaction ends: who deletes a user
     * waits for that, and so do others with a token of it.
     */
    async present(hash: Buffer): Promise<PresentedToken | undefined> {
      // By itself, for a statement that waits for a lock goes on with the tokens of before it waited.
      const text = `SELECT FROM auth.session
                    WHERE id = (SELECT session_id FROM auth.refresh_token WHERE hash = $1) FOR NO KEY UPDATE`;
      await query('lock_session_of_token', text, [hash]);
      return this.find(hash);
    },

    /** Looks a refresh token up. */
    async find(hash: Buffer): Promise<PresentedToken | undefined> {
      const text = `SELECT session.id, user_id, must_change_password, replaced_at IS NOT NULL AS replaced,
          CASE WHEN ended_at IS NOT NULL THEN 'revoked'
               WHEN ends_at < now() THEN 'expired'
               WHEN replaced_at < now() - make_interval(secs => $2) THEN 'reused'
               WHEN token.created_at < now() - make_interval(days => $3) THEN 'expired'
               ELSE 'valid' END AS state
        FROM auth.refresh_token AS token JOIN auth.session ON session.id = session_id
        WHERE hash = $1`;
      interface Row {
        id: string;
        user_id: string;
        must_change_password: boolean;
        replaced: boolean;
        state: RefreshTokenState;
      }
      const { rows } = await query<Row>('find_refresh_token', text, [hash, graceSeconds, lifetime.idle]);
      const row = rows[0];
      return (
        row && {
          sessionId: Number(row.id),
          userId: Number(row.user_id),
          mustChangePassword: row.must_change_password,
          state: row.state,
          replaced: row.replaced,
        }
      );
    },

    /** Puts the successor in the place of a token that was presented. */
    async replace(sessionId: number, hash: Buffer, successor: Buffer): Promise<void> {
      await query(
        'replace_refresh_token',
        'UPDATE auth.refresh_token SET replaced_at = now() WHERE hash = $1',
        [hash],
      );
      await this.addToken(sessionId, successor);
      await query('use_session', 'UPDATE auth.session SET last_used_at = now() WHERE id = $1', [sessionId]);
    },

    /** The live ones, newest first, from below the id `before` on. */
    async list(userId: number, before: number | undefined, limit: number): Promise<Session[]> {
      const text = `SELECT id, device, host(address) AS address, created_at AS "createdAt", last_used_at AS "lastUsedAt"
                    FROM auth.session
                    WHERE user_id = $1 AND ended_at IS NULL AND ends_at > now()
                      AND last_used_at > now() - make_interval(days => $4) AND ($2::bigint IS NULL OR id < $2)
                    ORDER BY id DESC LIMIT $3`;
      const values = [userId, before ?? null, limit, lifetime.idle];
      const { rows } = await query<Omit<Session, 'id'> & { id: string }>('list_sessions', text, values);
      return rows.map((row) => ({ ...row, id: Number(row.id) }));
    },

    /** Where the session came from; undefined when that is no identity service. */
    async originOf(userId: number, id: number): Promise<SessionOrigin | undefined> {
      // The suborgs of the newest login: those of an older one may have been taken away since.
      const text = `SELECT identity_issuer AS issuer, id_token AS "idToken",
                      (SELECT latest.suborgs FROM auth.session AS latest
                       WHERE latest.user_id = $1 AND latest.identity_issuer = session.identity_issuer
                       ORDER BY latest.id DESC LIMIT 1) AS suborgs
                    FROM auth.session
                    WHERE user_id = $1 AND id = $2 AND identity_issuer IS NOT NULL`;
      return (await query<SessionOrigin & object>('find_session_origin', text, [userId, id])).rows[0];
    },

    /** Whether the person has logged in from this network (in CIDR form) in the last 90 days and not been logged out. */
    async isKnownNetwork(userId: number, network: string): Promise<boolean> {
      const text = `SELECT FROM auth.session
                    WHERE user_id = $1 AND address <<= $2 AND ended_at IS NULL AND ends_at > now() LIMIT 1`;
      return (await query('find_session_of_network', text, [userId, network])).rowCount === 1;
    },

    async isLive(userId: number, id: number): Promise<boolean> {
      const text = `SELECT FROM auth.session
                    WHERE user_id = $1 AND id = $2 AND ended_at IS NULL AND ends_at > now()`;
      return (await query('find_live_session', text, [userId, id])).rowCount === 1;
    },

    /** Ends a session of the user; false when there is none of this id. In a transaction, late: it takes a lock. */
    endOne: (userId: number, id: number) => end(userId, 'id = $2', id),

    /** Ends all sessions of the user. In a transaction, late: it takes a lock. */
    endAll: (userId: number) => end(userId, 'true'),

    /** Ends those that began with a temporary password. In a transaction, late: it takes a lock. */
    endTemporary: (userId: number) => end(userId, 'must_change_password'),

    /** Deletes those that are over for so long that no refresh token of theirs would be good any more. */
    async forget(): Promise<void> {
      const over = `${overSince} < now() - make_interval(days => $1)`;
      // First: a session can have thousands, and would take them with it at once.
      const tokens = `session_id IN (SELECT id FROM auth.session WHERE ${over})`;
      await deleteOld(query, 'delete_refresh_tokens', 'auth.refresh_token', tokens, [lifetime.idle]);
      await deleteOld(query, 'delete_sessions', 'auth.session', over, [lifetime.idle]);
    },
  };
}
