import { ConfigError, type Database } from '@content-platform/chassis';
import { audit } from '../audit.ts';
import { seal, unseal } from './sealing.ts';
import { createSigningKeyStore } from './signing-key-store.ts';

/** Everything that is sealed under AUTH_KEY_SECRET, and what each was sealed with as its context. */
const sealedColumns = [
  { table: 'auth.signing_key', context: 'kid', sealed: 'sealed_private_key' },
  { table: 'auth.secret', context: 'name', sealed: 'sealed' },
] as const;

interface Sealed {
  column: (typeof sealedColumns)[number];
  context: string;
  sealed: Buffer;
}

async function readAll(query: Database['query']): Promise<Sealed[]> {
  const all: Sealed[] = [];
  for (const column of sealedColumns) {
    const text = `SELECT ${column.context} AS context, ${column.sealed} AS sealed FROM ${column.table}`;
    const { rows } = await query<Omit<Sealed, 'column'>>('list_sealed', text);
    all.push(...rows.map((row) => ({ ...row, column })));
  }
  return all;
}

/** Throws when the secret opens not all of them. */
function openAll(all: readonly Sealed[], secret: string): Promise<Buffer[]> {
  return Promise.all(all.map(({ sealed, context }) => unseal(sealed, secret, context)));
}

/**
 * Seals everything under `next` that was sealed under `current`: all of it or, on any error, nothing. Returns how much
 * that was, or `done` when all of it is under `next` already, so that it can be tried again when the answer was lost.
 * Throws ConfigError when neither secret opens all.
 */
export async function rotateKeySecret(
  database: Pick<Database, 'transaction'>,
  current: string,
  next: string,
): Promise<number | 'done'> {
  return database.transaction(async (query) => {
    await createSigningKeyStore(query).lock();
    await query('lock_secrets', 'LOCK TABLE auth.secret IN SHARE ROW EXCLUSIVE MODE');
    const all = await readAll(query);
    const plain = await openAll(all, current).catch(() => undefined);
    if (!plain) {
      await openAll(all, next).catch(() => {
        throw new ConfigError('AUTH_KEY_SECRET does not open the keys in the database; nothing was changed');
      });
      return 'done';
    }
    for (const [index, { column, context }] of all.entries()) {
      const text = `UPDATE ${column.table} SET ${column.sealed} = $2 WHERE ${column.context} = $1`;
      await query('update_sealed', text, [context, await seal(plain[index]!, next, context)]);
    }
    const details = { sealed: all.length };
    await audit(query, { event: 'key_secret_rotated', actor: 'command', details });
    return all.length;
  });
}
