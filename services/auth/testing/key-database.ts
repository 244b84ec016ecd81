import { signingKeyTimes } from '../keys/key-rotation.ts';
import { loadSigningKeys, type SigningKeys } from '../keys/signing-keys.ts';
import { createAuthDatabase } from '../stores.ts';
import { keySecret, openAuthService } from './start-auth.ts';

/** Opens a new database on which several processes can load keys. */
export async function openKeyDatabase() {
  const { database, log, logger, close } = await openAuthService();
  await database.query('keep', 'CREATE TABLE auth.kept_key AS TABLE auth.signing_key');
  const loaded: SigningKeys[] = [];
  const endProcesses = () => Promise.all(loaded.splice(0).map((keys) => keys.close()));
  return {
    database,
    stores: createAuthDatabase(database),
    log,
    /** The keys that one of several processes has loaded. */
    async load(secret = keySecret, from = database, times = signingKeyTimes): Promise<SigningKeys> {
      const keys = await loadSigningKeys(createAuthDatabase(from), secret, logger, times);
      loaded.push(keys);
      return keys;
    },
    /** Ends the processes and restores the first key alone: a new key takes 0.2 s of CPU. */
    async reset(): Promise<void> {
      await endProcesses();
      await database.query('empty', 'TRUNCATE auth.signing_key, auth.secret, audit.entry, audit.unlinked');
      await database.query('restore', 'INSERT INTO auth.signing_key TABLE auth.kept_key');
      log.length = 0;
    },
    async drop(): Promise<void> {
      await endProcesses();
      await close();
    },
  };
}
export type KeyDatabase = Awaited<ReturnType<typeof openKeyDatabase>>;
