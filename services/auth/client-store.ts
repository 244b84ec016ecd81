import { statements, type Database } from '@content-platform/chassis';
import type { Scope } from '@content-platform/contract';

export interface Client {
  name: string;
  secretHash: string;
  scopes: Scope[];
  disabled: boolean;
}

export type NewClient = Omit<Client, 'disabled' | 'scopes'> & { scopes: readonly Scope[] };

export const clientName = /^[a-z][a-z0-9-]{0,63}$/;

export type ClientStore = ReturnType<typeof createClientStore>;

/** Stores the machine clients. All functions throw the errors of `query`. */
export function createClientStore(query: Database['query']) {
  const { first, affects } = statements(query);
  return {
    /** `name` may be any text from a request. */
    async find(name: string): Promise<Client | undefined> {
      // PostgreSQL rejects a NUL with an error, so invalid names are not sent to it.
      if (!clientName.test(name)) return undefined;
      const text = `SELECT name, secret_hash AS "secretHash", scopes, disabled FROM auth.client WHERE name = $1`;
      return first<Client>('find_client', text, [name]);
    },

    /** Returns false if the name is taken. */
    create({ name, secretHash, scopes }: NewClient) {
      const text = `INSERT INTO auth.client (name, secret_hash, scopes) VALUES ($1, $2, $3)
                    ON CONFLICT (name) DO NOTHING`;
      return affects('create_client', text, [name, secretHash, scopes]);
    },

    /** Locks the client until the transaction ends. Returns false if it was changed. */
    lockIfUnchanged({ name, secretHash }: Client) {
      const text = 'SELECT FROM auth.client WHERE name = $1 AND secret_hash = $2 AND NOT disabled FOR SHARE';
      return affects('hold_client', text, [name, secretHash]);
    },

    /** Returns false if the client does not exist or is disabled. */
    replaceSecretHash(name: string, secretHash: string) {
      const text = 'UPDATE auth.client SET secret_hash = $2 WHERE name = $1 AND NOT disabled';
      return affects('replace_client_secret', text, [name, secretHash]);
    },

    /** Returns false if the client does not exist or is disabled. */
    disable(name: string) {
      const text = 'UPDATE auth.client SET disabled = true WHERE name = $1 AND NOT disabled';
      return affects('disable_client', text, [name]);
    },
  };
}
