import { randomBytes } from 'node:crypto';
import { ConfigError, type Database } from '@content-platform/chassis';
import { statements } from '../statements.ts';
import { seal, unseal } from './sealing.ts';

/** Everything that is sealed under AUTH_KEY_SECRET, and which column was the context of the sealing. */
const sealedColumns = [
  { table: 'auth.signing_key', context: 'kid', sealed: 'sealed_private_key' },
  { table: 'auth.secret', context: 'name', sealed: 'sealed' },
] as const;

export interface Sealed {
  column: (typeof sealedColumns)[number];
  context: string;
  sealed: Buffer;
}

export type SecretStore = ReturnType<typeof createSecretStore>;

/** What the database keeps sealed under AUTH_KEY_SECRET. Everything throws what `query` throws. */
export function createSecretStore(query: Database['query']) {
  const { rows, first, run } = statements(query);
  return {
    /** The secret of this name; `sealed` is stored first if there is none. */
    async findOrAdd(name: string, sealed: Buffer): Promise<Buffer> {
      const text = `INSERT INTO auth.secret (name, sealed) VALUES ($1, $2)
                    ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING sealed`;
      return (await first<{ sealed: Buffer }>('load_secret', text, [name, sealed]))!.sealed;
    },

    /** Keeps secrets from being added or changed until the transaction ends. */
    lock: () => run('lock_secrets', 'LOCK TABLE auth.secret IN SHARE ROW EXCLUSIVE MODE'),

    /** Every secret and every private key. */
    async listSealed(): Promise<Sealed[]> {
      const all: Sealed[] = [];
      for (const column of sealedColumns) {
        const text = `SELECT ${column.context} AS context, ${column.sealed} AS sealed FROM ${column.table}`;
        const found = await rows<Omit<Sealed, 'column'>>('list_sealed', text);
        all.push(...found.map((row) => ({ ...row, column })));
      }
      return all;
    },

    updateSealed({ column, context, sealed }: Sealed) {
      const text = `UPDATE ${column.table} SET ${column.sealed} = $2 WHERE ${column.context} = $1`;
      return run('update_sealed', text, [context, sealed]);
    },
  };
}

/**
 * A secret of 256 bits that the service keeps in the database, sealed under AUTH_KEY_SECRET; the first call makes it.
 * Throws ConfigError if it was sealed under another AUTH_KEY_SECRET.
 */
export async function loadSecret(secrets: SecretStore, name: string, keySecret: string): Promise<Buffer> {
  const sealed = await secrets.findOrAdd(name, await seal(randomBytes(32), keySecret, name));
  return unseal(sealed, keySecret, name).catch(() => {
    throw new ConfigError(
      'AUTH_KEY_SECRET does not open the secrets in the database; it must be the one they were made with',
    );
  });
}
