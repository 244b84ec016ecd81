import { statements, type Database } from '@content-platform/chassis';
import type { Role } from '@content-platform/contract';

export interface User {
  id: number;
  email: string;
  name: string;
  /** null: the user has not chosen a password */
  passwordHash: string | null;
  /** The temporary password, even if it was used or has expired; null: there is none. */
  tempPasswordHash: string | null;
  tempPasswordExpiresAt: Date | null;
  roles: Role[];
  disabled: boolean;
  /** One of the suborgs that the identity provider named. */
  suborg: string | null;
  createdAt: Date;
  /** Whether logins need a second factor. */
  hasMfa: boolean;
}

export type NewUser = Pick<User, 'email' | 'name' | 'passwordHash'> & { roles: readonly Role[] };

// PostgreSQL returns bigint as text, and float8 as a number.
const columns = `id::float8 AS id, email, name, password_hash AS "passwordHash", temp_password_hash AS "tempPasswordHash",
  temp_password_expires_at AS "tempPasswordExpiresAt", roles, disabled, suborg, created_at AS "createdAt",
  EXISTS (SELECT FROM auth.totp WHERE totp.user_id = "user".id AND confirmed_at IS NOT NULL) AS "hasMfa"`;

/**
 * Must equal the expression of the unique index. Only A to Z are case-insensitive: if K equalled the Kelvin sign, one
 * user could take over the account of another.
 */
const folded = (email: string) => `lower(${email} COLLATE "C")`;

/** Returns a LIKE pattern that matches `part` literally. */
const containing = (part: string): string => `%${part.replace(/[\\%_]/g, '\\$&')}%`;

export type UserStore = ReturnType<typeof createUserStore>;

/** Stores users. All functions throw the errors of `query`. */
export function createUserStore(query: Database['query']) {
  const { rows, first, affects, run } = statements(query);

  /** Looks up the user of a login. `account` is its key in the throttle (`email:…`), also if no such user exists. */
  async function lookUp(email: string): Promise<{ account: string; user: User | undefined }> {
    const text = `SELECT account, ${columns}
                  FROM (SELECT ${folded('$1')} AS account) AS typed
                  LEFT JOIN auth.user ON ${folded('email')} = account`;
    const { account, ...user } = (await first<User & { account: string }>('find_user_by_email', text, [
      email,
    ]))!;
    return { account: `email:${account}`, user: user.id === null ? undefined : user };
  }

  return {
    lookUp,
    findByEmail: async (email: string) => (await lookUp(email)).user,
    findById: (id: number) =>
      first<User>('find_user', `SELECT ${columns} FROM auth.user WHERE id = $1`, [id]),

    /** Returns the user with the email `search`, else those with it in name or email, newest first, below `before`. */
    async list(search: string | undefined, before: number | undefined, limit: number): Promise<User[]> {
      const exact = search?.includes('@') && before === undefined && (await lookUp(search)).user;
      if (exact) return [exact];
      // The database's own collation may not fold case outside ASCII.
      const text = `SELECT ${columns} FROM auth.user
                    WHERE ($1::text IS NULL OR normalize(name) ILIKE $1 COLLATE "und-x-icu" OR email ILIKE $1 COLLATE "und-x-icu")
                      AND ($2::bigint IS NULL OR id < $2)
                    ORDER BY "user".id DESC LIMIT $3`;
      const pattern = search === undefined ? null : containing(search.normalize('NFC'));
      return rows<User>('list_users', text, [pattern, before ?? null, limit]);
    },

    /** Prevents changes to the user and their logins until the transaction ends. */
    lock: (id: number) =>
      first<User>('lock_user', `SELECT ${columns} FROM auth.user WHERE id = $1 FOR UPDATE`, [id]),

    /** Returns whether another enabled admin exists. Other transactions that call this wait until this one ends. */
    async hasOtherAdmin(id: number): Promise<boolean> {
      await run('lock_admins', `SELECT pg_advisory_xact_lock(hashtext('auth.admins'))`);
      const text = `SELECT FROM auth.user WHERE 'admin' = ANY (roles) AND NOT disabled AND id <> $1 LIMIT 1`;
      return affects('find_other_admin', text, [id]);
    },

    update(id: number, { name, roles, disabled }: Pick<User, 'name' | 'roles' | 'disabled'>) {
      const text = 'UPDATE auth.user SET name = $2, roles = $3, disabled = $4 WHERE id = $1';
      return run('update_user', text, [id, name, roles, disabled]);
    },

    delete(id: number) {
      const text = `WITH resets AS (DELETE FROM auth.password_reset WHERE user_id = $1)
                    DELETE FROM auth.user WHERE id = $1`;
      return run('delete_user', text, [id]);
    },

    /** Locks the user. Returns undefined if the user was disabled, deleted or given another password. */
    lockIfUnchanged(id: number, passwordHash: string | null) {
      const text = `SELECT ${columns} FROM auth.user
                    WHERE id = $1 AND NOT disabled AND password_hash IS NOT DISTINCT FROM $2 FOR SHARE`;
      return first<User>('hold_user', text, [id, passwordHash]);
    },

    /**
     * Uses up the temporary password and locks the user. Returns undefined if the password was used, replaced or has
     * expired, or if the user was disabled or deleted.
     */
    consumeTemporaryPassword(id: number, hash: string | null) {
      const text = `UPDATE auth.user SET temp_password_used_at = now()
                    WHERE id = $1 AND NOT disabled AND temp_password_hash = $2
                      AND temp_password_used_at IS NULL AND temp_password_expires_at > now() RETURNING ${columns}`;
      return first<User>('spend_temporary_password', text, [id, hash]);
    },

    /** Returns whether the temporary password with this hash can be used for a login. */
    hasTemporaryPassword(id: number, hash: string | null) {
      const text = `SELECT FROM auth.user WHERE id = $1 AND temp_password_hash = $2
                      AND temp_password_used_at IS NULL AND temp_password_expires_at > now()`;
      return affects('find_temporary_password', text, [id, hash]);
    },

    /** Replaces an earlier temporary password. Returns when the new one expires. */
    async setTemporaryPassword(id: number, hash: string, seconds: number): Promise<Date> {
      const text = `UPDATE auth.user SET temp_password_hash = $2, temp_password_used_at = NULL,
                      temp_password_expires_at = now() + make_interval(secs => $3)
                    WHERE id = $1 RETURNING temp_password_expires_at AS at`;
      return (await first<{ at: Date }>('set_temporary_password', text, [id, hash, seconds]))!.at;
    },

    removePassword: (id: number) =>
      run('remove_password', 'UPDATE auth.user SET password_hash = NULL WHERE id = $1', [id]),

    /** Also deletes the temporary password. */
    setPassword(id: number, hash: string) {
      const text = `UPDATE auth.user SET password_hash = $2, temp_password_hash = NULL, temp_password_expires_at = NULL,
                      temp_password_used_at = NULL WHERE id = $1`;
      return run('set_password', text, [id, hash]);
    },

    /** Returns undefined if another user has the email. */
    create({ email, name, passwordHash, roles }: NewUser) {
      const text = `INSERT INTO auth.user (email, name, password_hash, roles) VALUES ($1, $2, $3, $4)
                    ON CONFLICT (${folded('email')}) DO NOTHING RETURNING ${columns}`;
      return first<User>('create_user', text, [email, name, passwordHash, roles]);
    },

    /** Returns the changed user; undefined if the user was deleted. */
    setSuborg(id: number, suborg: string | null) {
      const text = `UPDATE auth.user SET suborg = $2 WHERE id = $1 RETURNING ${columns}`;
      return first<User>('set_suborg', text, [id, suborg]);
    },

    /** Does nothing if the hash is no longer `from`. */
    replacePasswordHash(id: number, from: string, to: string) {
      const text = 'UPDATE auth.user SET password_hash = $3 WHERE id = $1 AND password_hash = $2';
      return run('replace_password_hash', text, [id, from, to]);
    },
  };
}
