import type { Database } from '@content-platform/chassis';
import type { Role } from '@content-platform/contract';

export interface User {
  id: number;
  email: string;
  name: string;
  /** null: there is none yet */
  passwordHash: string | null;
  /** of the password that was made for one login, be it used or expired; null: there is none */
  tempPasswordHash: string | null;
  /** null: there is none */
  tempPasswordExpiresAt: Date | null;
  roles: Role[];
  disabled: boolean;
  /** chosen at the identity service */
  suborg: string | null;
  createdAt: Date;
}

/** What an administrator can change. */
export type UserChange = Pick<User, 'name' | 'roles' | 'disabled'>;

export type NewUser = Pick<User, 'email' | 'name' | 'passwordHash' | 'roles'>;

type Row = Omit<User, 'id'> & { id: string };

const columns = `id, email, name, password_hash AS "passwordHash", temp_password_hash AS "tempPasswordHash",
  temp_password_expires_at AS "tempPasswordExpiresAt", roles, disabled, suborg, created_at AS "createdAt"`;

function toUser(row: Row | undefined): User | undefined {
  // PostgreSQL's bigint arrives as text.
  return row && { ...row, id: Number(row.id) };
}

/**
 * An address as it is compared: as in the unique index, and in every locale of a database. Only A to Z have two cases; K is
 * not the Kelvin sign, or somebody would get another one's mail, and their account.
 */
const folded = (address: string) => `lower(${address} COLLATE "C")`;

/** For a search: what is typed there is no pattern. */
function containing(part: string): string {
  return `%${part.replace(/[\\%_]/g, '\\$&')}%`;
}

export type UserStore = ReturnType<typeof createUserStore>;

/** The users. Addresses are compared without regard to the case of A to Z. Everything throws what `query` throws. */
export function createUserStore(query: Database['query']) {
  return {
    async findByEmail(email: string): Promise<User | undefined> {
      const text = `SELECT ${columns} FROM auth.user WHERE ${folded('email')} = ${folded('$1')}`;
      return toUser((await query<Row>('find_user_by_email', text, [email])).rows[0]);
    },

    /** Who is meant at a login; `account` names them as they are compared here, and also who is not there. */
    async lookUp(email: string): Promise<{ account: string; user: User | undefined }> {
      const text = `SELECT account, ${columns}
                    FROM (SELECT ${folded('$1')} AS account) AS typed
                    LEFT JOIN auth.user ON ${folded('email')} = account`;
      const { rows } = await query<Row & { account: string }>('find_user_by_email', text, [email]);
      const { account, ...row } = rows[0]!;
      return { account, user: row.id === null ? undefined : toUser(row) };
    },

    async findById(id: number): Promise<User | undefined> {
      const text = `SELECT ${columns} FROM auth.user WHERE id = $1`;
      return toUser((await query<Row>('find_user', text, [id])).rows[0]);
    },

    /** Those with `search` in their name or address, newest first, from below the id `before` on. */
    async list(search: string | undefined, before: number | undefined, limit: number): Promise<User[]> {
      // The database's own collation may know no case outside ASCII.
      const text = `SELECT ${columns} FROM auth.user
                    WHERE ($1::text IS NULL OR name ILIKE $1 COLLATE "und-x-icu" OR email ILIKE $1 COLLATE "und-x-icu")
                      AND ($2::bigint IS NULL OR id < $2)
                    ORDER BY id DESC LIMIT $3`;
      const pattern = search === undefined ? null : containing(search);
      const { rows } = await query<Row>('list_users', text, [pattern, before ?? null, limit]);
      return rows.map((row) => toUser(row)!);
    },

    /** Keeps everybody else from changing the user, and them from logging in, until the transaction ends. */
    async lock(id: number): Promise<User | undefined> {
      const text = `SELECT ${columns} FROM auth.user WHERE id = $1 FOR UPDATE`;
      return toUser((await query<Row>('lock_user', text, [id])).rows[0]);
    },

    /** Whether an enabled admin is there beside the user `id`. One transaction at a time gets to ask; the others wait. */
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
     * The user as they are now, and until the transaction ends. Undefined when they were disabled, deleted or given
     * another password since it was checked.
     */
    async hold(id: number, passwordHash: string | null): Promise<User | undefined> {
      const text = `SELECT ${columns} FROM auth.user
                    WHERE id = $1 AND NOT disabled AND password_hash IS NOT DISTINCT FROM $2 FOR SHARE`;
      return toUser((await query<Row>('hold_user', text, [id, passwordHash])).rows[0]);
    },

    /**
     * Uses the temporary password up, whose hash this is, and keeps the user as `hold` does. Undefined when it is used or
     * expired, or was replaced, or the user disabled or deleted.
     */
    async spendTemporaryPassword(id: number, hash: string | null): Promise<User | undefined> {
      const text = `UPDATE auth.user SET temp_password_used_at = now()
                    WHERE id = $1 AND NOT disabled AND temp_password_hash = $2
                      AND temp_password_used_at IS NULL AND temp_password_expires_at > now() RETURNING ${columns}`;
      return toUser((await query<Row>('spend_temporary_password', text, [id, hash])).rows[0]);
    },

    /** In the place of an earlier one. Returns when it expires. */
    async setTemporaryPassword(id: number, hash: string, seconds: number): Promise<Date> {
      const text = `UPDATE auth.user SET temp_password_hash = $2, temp_password_used_at = NULL,
                      temp_password_expires_at = now() + make_interval(secs => $3)
                    WHERE id = $1 RETURNING temp_password_expires_at AS at`;
      return (await query<{ at: Date }>('set_temporary_password', text, [id, hash, seconds])).rows[0]!.at;
    },

    /** The person's own; a temporary one is of no use any more. */
    async setPassword(id: number, hash: string): Promise<void> {
      const text = `UPDATE auth.user SET password_hash = $2, temp_password_hash = NULL, temp_password_expires_at = NULL,
                      temp_password_used_at = NULL WHERE id = $1`;
      await query('set_password', text, [id, hash]);
    },

    /** The new user's id, or undefined when the address is taken. */
    async create({ email, name, passwordHash, roles }: NewUser): Promise<number | undefined> {
      const text = `INSERT INTO auth.user (email, name, password_hash, roles) VALUES ($1, $2, $3, $4)
                    ON CONFLICT (${folded('email')}) DO NOTHING RETURNING id`;
      const { rows } = await query<{ id: string }>('create_user', text, [email, name, passwordHash, roles]);
      return rows[0] && Number(rows[0].id);
    },

    /** The changed user; undefined when there is none any more. */
    async setSuborg(id: number, suborg: string | null): Promise<User | undefined> {
      const text = `UPDATE auth.user SET suborg = $2 WHERE id = $1 RETURNING ${columns}`;
      return toUser((await query<Row>('set_suborg', text, [id, suborg])).rows[0]);
    },

    /** Leaves the hash alone when it is not `from` any more: the password was changed meanwhile. */
    async replacePasswordHash(id: number, from: string, to: string): Promise<void> {
      const text = 'UPDATE auth.user SET password_hash = $3 WHERE id = $1 AND password_hash = $2';
      await query('replace_password_hash', text, [id, from, to]);
    },
  };
}
