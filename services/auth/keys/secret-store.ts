import { randomBytes } from 'node:crypto';
import { ConfigError, statements, type Database } from '@content-platform/chassis';
import { seal, unseal } from './sealing.ts';

/** The columns that are sealed with AUTH_KEY_SECRET, each with the column that was the context. */
const sealedColumns = [
  { table: 'auth.signing_key', context: 'kid', sealed: 'sealed_private_key' },
  { table: 'auth.secret', context: 'name', sealed: 'sealed' },
] as const;

export interface SealedValue {
  column: (typeof sealedColumns)[number];
  context: string;
  sealed: Buffer;
}

type SecretStore = ReturnType<typeof createSecretStore>;

/** Stores the values sealed with AUTH_KEY_SECRET. All functions throw the errors of `query`. */
export function createSecretStore(query: Database['query']) {
  const { rows, first, run } = statements(query);
  return {
    /** Returns the sealed secret with this name; stores `sealed` first if there is none. */
    async findOrAdd(name: string, sealed: Buffer): Promise<Buffer> {
      // The update changes nothing. After DO NOTHING, RETURNING would not return an existing row.
      const text = `INSERT INTO auth.secret (name, sealed) VALUES ($1, $2)
                    ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING sealed`;
      return (await first<{ sealed: Buffer }>('load_secret', text, [name, sealed]))!.sealed;
    },

    /** Prevents other transactions from adding or changing secrets until this one ends. */
    lock: () => run('lock_secrets', 'LOCK TABLE auth.secret IN SHARE ROW EXCLUSIVE MODE'),

    /** Returns every secret and every private key. */
    async listSealed(): Promise<SealedValue[]> {
      const all: SealedValue[] = [];
      for (const column of sealedColumns) {
        const text = `SELECT ${column.context} AS context, ${column.sealed} AS sealed FROM ${column.table}`;
        const found = await rows<Omit<SealedValue, 'column'>>('list_sealed', text);
        all.push(...found.map((row) => ({ ...row, column })));
      }
      return all;
    },

    updateSealed({ column, context, sealed }: SealedValue) {
      const text = `UPDATE ${column.table} SET ${column.sealed} = $2 WHERE ${column.context} = $1`;
      return run('update_sealed', text, [context, sealed]);
    },
  };
}

/** Returns a 256-bit secret; the first call creates it. Throws ConfigError if another AUTH_KEY_SECRET sealed it. */
export async function loadSecret(secrets: SecretStore, name: string, keySecret: string): Promise<Buffer> {
  const sealed = await secrets.findOrAdd(name, await seal(randomBytes(32), keySecret, name));
  return unseal(sealed, keySecret, name).catch(() => {
    throw new ConfigError(
      'AUTH_KEY_SECRET does not decrypt the secrets in the database; set the value that encrypted them',
    );
  });
}
