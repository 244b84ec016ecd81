import type { Database } from '@content-platform/chassis';
import type { Role } from '@content-platform/contract';

export interface User {
  id: number;
  email: string;
  name: string;
  /** null: there is none yet */
  passwordHash: string | null;
  roles: Role[];
  disabled: boolean;
  /** chosen at the identity service */
  suborg: string | null;
  createdAt: Date;
}

export type NewUser = Pick<User, 'email' | 'name' | 'passwordHash' | 'roles'>;

type Row = Omit<User, 'id'> & { id: string };

const columns = `id, email, name, password_hash AS "passwordHash", roles, disabled, suborg, created_at AS "createdAt"`;

function toUser(row: Row | undefined): User | undefined {
  // PostgreSQL's bigint arrives as text.
  return row && { ...row, id: Number(row.id) };
}

export type UserStore = ReturnType<typeof createUserStore>;

/** The users. Addresses are compared without regard to case. Everything throws what `query` throws. */
export function createUserStore(query: Database['query']) {
  return {
    async findByEmail(email: string): Promise<User | undefined> {
      const text = `SELECT ${columns} FROM auth.user WHERE lower(email) = lower($1)`;
      return toUser((await query<Row>('find_user_by_email', text, [email])).rows[0]);
    },

    async findById(id: number): Promise<User | undefined> {
      const text = `SELECT ${columns} FROM auth.user WHERE id = $1`;
      return toUser((await query<Row>('find_user', text, [id])).rows[0]);
    },

    /**
     * Keeps the user as they are until the transaction ends. False when they were disabled, deleted or given another
     * password since it was checked.
     */
    async hold(id: number, passwordHash: string | null): Promise<boolean> {
      const text = `SELECT FROM auth.user
                    WHERE id = $1 AND NOT disabled AND password_hash IS NOT DISTINCT FROM $2 FOR SHARE`;
      return (await query('hold_user', text, [id, passwordHash])).rowCount === 1;
    },

    /** The new user's id, or undefined when the address is taken. */
    async create({ email, name, passwordHash, roles }: NewUser): Promise<number | undefined> {
      const text = `INSERT INTO auth.user (email, name, password_hash, roles) VALUES ($1, $2, $3, $4)
                    ON CONFLICT (lower(email)) DO NOTHING RETURNING id`;
      const { rows } = await query<{ id: string }>('create_user', text, [email, name, passwordHash, roles]);
      return rows[0] && Number(rows[0].id);
    },

    /** Leaves the hash alone when it is not `from` any more: the password was changed meanwhile. */
    async replacePasswordHash(id: number, from: string, to: string): Promise<void> {
      const text = 'UPDATE auth.user SET password_hash = $3 WHERE id = $1 AND password_hash = $2';
      await query('replace_password_hash', text, [id, from, to]);
    },
  };
}
