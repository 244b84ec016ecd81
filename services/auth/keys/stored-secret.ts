import { randomBytes } from 'node:crypto';
import { ConfigError, type Database } from '@content-platform/chassis';
import { seal, unseal } from './sealing.ts';

/**
 * A secret of 256 bits that the service keeps in the database, sealed under AUTH_KEY_SECRET; it is made when first asked
 * for. Throws ConfigError when it was sealed under another one.
 */
export async function loadSecret(database: Database, name: string, keySecret: string): Promise<Buffer> {
  const made = await seal(randomBytes(32), keySecret, name);
  const text = `INSERT INTO auth.secret (name, sealed) VALUES ($1, $2)
                ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING sealed`;
  const { rows } = await database.query<{ sealed: Buffer }>('load_secret', text, [name, made]);
  return unseal(rows[0]!.sealed, keySecret, name).catch(() => {
    throw new ConfigError(
      'AUTH_KEY_SECRET does not open the secrets in the database; it must be the one they were made with',
    );
  });
}
