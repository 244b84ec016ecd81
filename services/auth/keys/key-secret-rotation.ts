import { ConfigError } from '@content-platform/chassis';
import type { AuthDatabase } from '../stores.ts';
import { seal, unseal } from './sealing.ts';
import type { SealedValue } from './secret-store.ts';

/** Unseals all. Throws if the secret does not match one of them. */
function unsealAll(all: readonly SealedValue[], secret: string): Promise<Buffer[]> {
  return Promise.all(all.map(({ sealed, context }) => unseal(sealed, secret, context)));
}

/**
 * Reseals everything from the secret `current` to `next`, or changes nothing on any error. Returns the number of keys
 * and secrets. Returns `done` if `next` already opens all, so that the command can be repeated if its output was lost.
 * Throws ConfigError if neither secret opens all.
 */
export async function rotateKeySecret(
  database: Pick<AuthDatabase, 'transaction'>,
  current: string,
  next: string,
): Promise<number | 'done'> {
  return database.transaction(async ({ signingKeys, secrets, audit }) => {
    await signingKeys.lock();
    await secrets.lock();
    const all = await secrets.listSealed();
    const plain = await unsealAll(all, current).catch(() => undefined);
    if (!plain) {
      await unsealAll(all, next).catch(() => {
        throw new ConfigError(
          'AUTH_KEY_SECRET does not decrypt the keys in the database; nothing was changed',
        );
      });
      return 'done';
    }
    for (const [index, old] of all.entries()) {
      await secrets.updateSealed({ ...old, sealed: await seal(plain[index]!, next, old.context) });
    }
    await audit.add({ event: 'key_secret_rotated', actor: 'command', details: { sealed: all.length } });
    return all.length;
  });
}
