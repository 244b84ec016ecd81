import type { Database } from '@content-platform/chassis';
import type { Scope } from '@content-platform/contract';
import { statements } from './statements.ts';

/** A machine that gets tokens with a secret of its own. */
export interface Client {
  name: string;
  secretHash: string;
  scopes: Scope[];
  disabled: boolean;
}

export type NewClient = Omit<Client, 'disabled' | 'scopes'> & { scopes: readonly Scope[] };

export const clientName = /^[a-z][a-z0-9-]{0,63}$/;

export type ClientStore = ReturnType<typeof createClientStore>;

/** The machine clients. Everything throws what `query` throws. */
export function createClientStore(query: Database['query']) {
  const { first, affects } = statements(query);
  return {
    /** `name` may be anything a request holds. */
    async find(name: string): Promise<Client | undefined> {
      // Not for PostgreSQL: a NUL would be an error there.
      if (!clientName.test(name)) return undefined;
      const text = `SELECT name, secret_hash AS "secretHash", scopes, disabled FROM auth.client WHERE name = $1`;
      return first<Client>('find_client', text, [name]);
    },

    /** False when the name is taken. */
    create({ name, secretHash, scopes }: NewClient) {
      const text = `INSERT INTO auth.client (name, secret_hash, scopes) VALUES ($1, $2, $3)
                    ON CONFLICT (name) DO NOTHING`;
      return affects('create_client', text, [name, secretHash, scopes]);
    },

    /** Keeps the client from being changed until the transaction ends. False if it was disabled or given another secret. */
    lockIfUnchanged({ name, secretHash }: Client) {
      const text = 'SELECT FROM auth.client WHERE name = $1 AND secret_hash = $2 AND NOT disabled FOR SHARE';
      return affects('hold_client', text, [name, secretHash]);
    },

    /** False when there is no such client, or it is disabled. */
    replaceSecretHash(name: string, secretHash: string) {
      const text = 'UPDATE auth.client SET secret_hash = $2 WHERE name = $1 AND NOT disabled';
      return affects('replace_client_secret', text, [name, secretHash]);
    },

    /** False when there is no such client, or it is disabled already. */
    disable(name: string) {
      const text = 'UPDATE auth.client SET disabled = true WHERE name = $1 AND NOT disabled';
      return affects('disable_client', text, [name]);
    },
  };
}
