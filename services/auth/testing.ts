// What the tests of this service share.
import { createDatabase, createLogger, createMetrics, watchRevocations } from '@content-platform/chassis';
import type { Role, Scope } from '@content-platform/contract';
import { startHttpServer } from '../../test/support/http-server.ts';
import { createTestDatabase } from '../../test/support/test-database.ts';
import { ensureClient, ensureUser, openAccounts } from './accounts.ts';
import { createAuth } from './app.ts';
import type { IdentitySettings } from './identity/settings.ts';
import { signingKeyTimes } from './keys/key-rotation.ts';
import { createPushDevices } from './sessions/push-devices.ts';
import { loadSecret } from './keys/secret-store.ts';
import { loadSigningKeys } from './keys/signing-keys.ts';
import { createAuthDatabase } from './stores.ts';
import { createMemoryFailures } from './throttle/failures.ts';
import { createLoginThrottle, loginBackoff } from './throttle/login-throttle.ts';

export const issuer = 'http://platform.test';
export const keySecret = 'a secret for tests, long enough to be taken';

/** Waits after failed logins that do not end while a test runs. */
export const longBackoff = { windowMs: 900_000, shortestMs: 600_000, longestMs: 900_000 };

/** No identity service. */
const noIdentity: IdentitySettings = {
  name: 'identity',
  provider: undefined,
  returnTo: [],
  linkByEmail: false,
  suborgsClaim: 'suborgs',
};

/** The service in this process, on a database of its own, with what it logs and counts. */
export async function startAuth({
  keyTimes = signingKeyTimes,
  identity = noIdentity,
  backoff = loginBackoff,
} = {}) {
  const testDatabase = await createTestDatabase();
  let equalized = 0;
  const accounts = await openAccounts(testDatabase.url);
  const log: string[] = [];
  const logger = createLogger('auth', 'debug', { write: (line) => void log.push(line) });
  const metrics = createMetrics('auth');
  const { url } = testDatabase;
  const database = createDatabase({ url, logger, metrics });
  const stores = createAuthDatabase(database);
  const keys = await loadSigningKeys(stores, keySecret, logger, keyTimes);
  const refreshSecret = await loadSecret(stores.secrets, 'refresh_token', keySecret);
  const revocations = watchRevocations(stores.revocations.listAfter, logger, metrics);
  const app = createAuth({
    issuer,
    database: stores,
    keys,
    refreshSecret,
    revocations,
    throttle: createLoginThrottle(createMemoryFailures(), backoff),
    passwordMinLength: 15,
    identity,
    pushDevices: createPushDevices(undefined, logger),
    equalizeFailureTime: async () => void (equalized += 1),
    logger,
    metrics,
  });
  const { origin, close } = await startHttpServer(app);
  return {
    origin,
    /** For commands, which open the database themselves. */
    databaseUrl: url,
    accounts,
    database,
    stores,
    keys,
    log,
    metrics,
    /** How often a failed login was delayed until it took as long as others. */
    equalized: () => equalized,
    addUser: (email: string, password: string, ...roles: Role[]) =>
      ensureUser(accounts, { email, name: 'A Person', password, roles: roles.length ? roles : ['user'] }),
    addClient: (name: string, secret: string, ...scopes: Scope[]) =>
      ensureClient(accounts, { name, secret, scopes }),
    async stop() {
      close();
      await revocations.close();
      await keys.close();
      await database.close();
      await accounts.close();
      await testDatabase.drop();
    },
  };
}
export type TestAuth = Awaited<ReturnType<typeof startAuth>>;

/** Header and claims of a token, unchecked. */
export function decode(token: string): { header: Record<string, unknown>; claims: Record<string, unknown> } {
  const [header, claims] = token
    .split('.', 2)
    .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>);
  return { header: header!, claims: claims! };
}
