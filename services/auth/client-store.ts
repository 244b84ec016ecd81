import type { Database } from '@content-platform/chassis';
import type { Scope } from '@content-platform/contract';

/** A machine that gets tokens with a secret of its own. */
export interface Client {
  name: string;
  secretHash: string;
  scopes: Scope[];
  disabled: boolean;
}

export const clientName = /^[a-z][a-z0-9-]{0,63}$/;

export type ClientStore = ReturnType<typeof createClientStore>;

/** The machine clients. Everything throws what `query` throws. */
export function createClientStore(query: Database['query']) {
  return {
    /** `name` may be anything a request holds. */
    async find(name: string): Promise<Client | undefined> {
      // Not for PostgreSQL: a NUL would be an error there.
      if (!clientName.test(name)) return undefined;
      const text = `SELECT name, secret_hash AS "secretHash", scopes, disabled FROM auth.client WHERE name = $1`;
      return (await query<Client>('find_client', text, [name])).rows[0];
    },

    /** False when the name is taken. */
    async create({ name, secretHash, scopes }: Omit<Client, 'disabled'>): Promise<boolean> {
      const text = `INSERT INTO auth.client (name, secret_hash, scopes) VALUES ($1, $2, $3)
                    ON CONFLICT (name) DO NOTHING`;
      return (await query('create_client', text, [name, secretHash, scopes])).rowCount === 1;
    },
  };
}
