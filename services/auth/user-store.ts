import type { Database } from '@content-platform/chassis';
import type { Role } from '@content-platform/contract';

export interface User {
  id: number;
  email: string;
  name: string;
  /** null: the user has chosen none yet */
  passwordHash: string | null;
  /** Of the password for one login, also when it was used or has expired; null: there is none. */
  tempPasswordHash: string | null;
  tempPasswordExpiresAt: Date | null;
  roles: Role[];
  disabled: boolean;
  /** Chosen from those that the identity service named. */
  suborg: string | null;
  createdAt: Date;
}

export type UserChange = Pick<User, 'name' | 'roles' | 'disabled'>;

export type NewUser = Pick<User, 'email' | 'name' | 'passwordHash'> & { roles: readonly Role[] };

// PostgreSQL sends bigint as text, and float8 as a number.
const columns = `id::float8 AS id, email, name, password_hash AS "passwordHash", temp_password_hash AS "tempPasswordHash",
  temp_password_expires_at AS "tempPasswordExpiresAt", roles, disabled, suborg, created_at AS "createdAt"`;

/**
 * An email as it is compared in every locale of a database; equal to the expression of the unique index. Only A to Z
 * have two cases: if K were the Kelvin sign, one person would get the mail and the account of another.
 */
const folded = (email: string) => `lower(${email} COLLATE "C")`;

/** A pattern that takes every character of `part` literally. */
function containing(part: string): string {
  return `%${part.replace(/[\\%_]/g, '\\$&')}%`;
}

export type UserStore = ReturnType<typeof createUserStore>;

/** The users. Emails are compared without regard to the case of A to Z. Everything throws what `query` throws. */
export function createUserStore(query: Database['query']) {
  return {
    async findByEmail(email: string): Promise<User | undefined> {
      const text = `SELECT ${columns} FROM auth.user WHERE ${folded('email')} = ${folded('$1')}`;
      return (await query<User>('find_user_by_email', text, [email])).rows[0];
    },

    /** The user of a login. `account` is the email as it is compared, also if there is no such user. */
    async lookUp(email: string): Promise<{ account: string; user: User | undefined }> {
      const text = `SELECT account, ${columns}
                    FROM (SELECT ${folded('$1')} AS account) AS typed
                    LEFT JOIN auth.user ON ${folded('email')} = account`;
      const { rows } = await query<User & { account: string }>('find_user_by_email', text, [email]);
      const { account, ...user } = rows[0]!;
      return { account, user: user.id === null ? undefined : user };
    },

    async findById(id: number): Promise<User | undefined> {
      const text = `SELECT ${columns} FROM auth.user WHERE id = $1`;
      return (await query<User>('find_user', text, [id])).rows[0];
    },

    /** The users with `search` in their name or email, newest first, with ids below `before`. */
    async list(search: string | undefined, before: number | undefined, limit: number): Promise<User[]> {
      // The database's own collation may have no case outside ASCII.
      const text = `SELECT ${columns} FROM auth.user
                    WHERE ($1::text IS NULL OR name ILIKE $1 COLLATE "und-x-icu" OR email ILIKE $1 COLLATE "und-x-icu")
                      AND ($2::bigint IS NULL OR id < $2)
                    ORDER BY "user".id DESC LIMIT $3`;
      const pattern = search === undefined ? null : containing(search);
      return (await query<User>('list_users', text, [pattern, before ?? null, limit])).rows;
    },

    /** Keeps the user from being changed and from logging in until the transaction ends. */
    async lock(id: number): Promise<User | undefined> {
      const text = `SELECT ${columns} FROM auth.user WHERE id = $1 FOR UPDATE`;
      return (await query<User>('lock_user', text, [id])).rows[0];
    },

    /** Whether there is an enabled admin other than the user `id`. Other transactions that ask wait until this one ends. */
    async hasOtherAdmin(id: number): Promise<boolean> {
      await query('lock_admins', `SELECT pg_advisory_xact_lock(hashtext('auth.admins'))`);
      const text = `SELECT FROM auth.user WHERE 'admin' = ANY (roles) AND NOT disabled AND id <> $1 LIMIT 1`;
      return (await query('find_other_admin', text, [id])).rowCount === 1;
    },

    async update(id: number, { name, roles, disabled }: UserChange): Promise<void> {
      const text = 'UPDATE auth.user SET name = $2, roles = $3, disabled = $4 WHERE id = $1';
      await query('update_user', text, [id, name, roles, disabled]);
    },

    async delete(id: number): Promise<void> {
      await query('delete_user', 'DELETE FROM auth.user WHERE id = $1', [id]);
    },

    /**
     * Keeps the user from being changed until the transaction ends. Undefined if the user was disabled, deleted or given
     * another password since `passwordHash` was read.
     */
    async lockIfUnchanged(id: number, passwordHash: string | null): Promise<User | undefined> {
      const text = `SELECT ${columns} FROM auth.user
                    WHERE id = $1 AND NOT disabled AND password_hash IS NOT DISTINCT FROM $2 FOR SHARE`;
      return (await query<User>('hold_user', text, [id, passwordHash])).rows[0];
    },

    /**
     * Uses up the temporary password with this hash, and keeps the user from being changed until the transaction ends.
     * Undefined if the password was used or replaced or has expired, or the user was disabled or deleted.
     */
    async spendTemporaryPassword(id: number, hash: string | null): Promise<User | undefined> {
      const text = `UPDATE auth.user SET temp_password_used_at = now()
                    WHERE id = $1 AND NOT disabled AND temp_password_hash = $2
                      AND temp_password_used_at IS NULL AND temp_password_expires_at > now() RETURNING ${columns}`;
      return (await query<User>('spend_temporary_password', text, [id, hash])).rows[0];
    },

    /** Replaces an earlier temporary password. Returns when the new one expires. */
    async setTemporaryPassword(id: number, hash: string, seconds: number): Promise<Date> {
      const text = `UPDATE auth.user SET temp_password_hash = $2, temp_password_used_at = NULL,
                      temp_password_expires_at = now() + make_interval(secs => $3)
                    WHERE id = $1 RETURNING temp_password_expires_at AS at`;
      return (await query<{ at: Date }>('set_temporary_password', text, [id, hash, seconds])).rows[0]!.at;
    },

    /** Stores the password that the user has chosen, and deletes a temporary one. */
    async setPassword(id: number, hash: string): Promise<void> {
      const text = `UPDATE auth.user SET password_hash = $2, temp_password_hash = NULL, temp_password_expires_at = NULL,
                      temp_password_used_at = NULL WHERE id = $1`;
      await query('set_password', text, [id, hash]);
    },

    /** The new user, or undefined if another user has the email. */
    async create({ email, name, passwordHash, roles }: NewUser): Promise<User | undefined> {
      const text = `INSERT INTO auth.user (email, name, password_hash, roles) VALUES ($1, $2, $3, $4)
                    ON CONFLICT (${folded('email')}) DO NOTHING RETURNING ${columns}`;
      return (await query<User>('create_user', text, [email, name, passwordHash, roles])).rows[0];
    },

    /** The changed user; undefined if the user was deleted. */
    async setSuborg(id: number, suborg: string | null): Promise<User | undefined> {
      const text = `UPDATE auth.user SET suborg = $2 WHERE id = $1 RETURNING ${columns}`;
      return (await query<User>('set_suborg', text, [id, suborg])).rows[0];
    },

    /** Does nothing if the hash is not `from` any more, because the password was changed. */
    async replacePasswordHash(id: number, from: string, to: string): Promise<void> {
      const text = 'UPDATE auth.user SET password_hash = $3 WHERE id = $1 AND password_hash = $2';
      await query('replace_password_hash', text, [id, from, to]);
    },
  };
}
