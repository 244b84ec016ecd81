// What the tests of the keys share.
import { createDatabase, createLogger, createMetrics, type Database } from '@content-platform/chassis';
import { createTestDatabase } from '../../../test/support/test-database.ts';
import { openAccounts } from '../accounts.ts';
import { createAuthDatabase } from '../stores.ts';
import { keySecret } from '../testing.ts';
import { signingKeyTimes } from './key-rotation.ts';
import { loadSigningKeys, type SigningKeys } from './signing-keys.ts';

/** A database of its own without keys, and processes that hold those they find or make. */
export async function openKeyDatabase() {
  const own = await createTestDatabase();
  const accounts = await openAccounts(own.url);
  const log: string[] = [];
  const logger = createLogger('auth', 'info', { write: (line) => void log.push(line) });
  const metrics = createMetrics('auth');
  const database = createDatabase({ url: own.url, logger, metrics });
  const loaded: SigningKeys[] = [];
  const endProcesses = () => Promise.all(loaded.splice(0).map((keys) => keys.close()));
  return {
    accounts,
    database,
    /** of the processes */
    log,
    /** The keys, as one of several processes holds them. */
    async load(secret = keySecret, from: Database = database, times = signingKeyTimes): Promise<SigningKeys> {
      const keys = await loadSigningKeys(createAuthDatabase(from), secret, logger, times);
      loaded.push(keys);
      return keys;
    },
    /** As it was at first. */
    async empty(): Promise<void> {
      await endProcesses();
      await database.query('empty', 'TRUNCATE auth.signing_key, auth.secret, auth.audit');
      log.length = 0;
    },
    async drop(): Promise<void> {
      await endProcesses();
      await database.close();
      await accounts.close();
      await own.drop();
    },
  };
}
export type KeyDatabase = Awaited<ReturnType<typeof openKeyDatabase>>;
