// What the tests of this service share.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  createDatabase,
  createLogger,
  createMetrics,
  createSlowLog,
  watchRevocations,
} from '@content-platform/chassis';
import type { Role, Scope } from '@content-platform/contract';
import { createTestDatabase } from '../../test/support/test-database.ts';
import { ensureClient, ensureUser, openAccounts } from './accounts.ts';
import { createAuth } from './app.ts';
import type { IdentitySettings } from './identity/settings.ts';
import { signingKeyTimes } from './keys/key-rotation.ts';
import { createMemoryCounts } from './guessing/failure-counts.ts';
import { guessBackoff } from './guessing/guesses.ts';
import { createPushDevices } from './sessions/push-devices.ts';
import { revocationsAfter } from './sessions/revocations.ts';
import { loadSecret } from './keys/stored-secret.ts';
import { loadSigningKeys } from './keys/signing-keys.ts';

export const issuer = 'http://platform.test';
export const keySecret = 'a secret for tests, long enough to be taken';

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
  failures = createMemoryCounts(guessBackoff),
} = {}) {
  const testDatabase = await createTestDatabase();
  const accounts = await openAccounts(testDatabase.url);
  const log: string[] = [];
  const logger = createLogger('auth', 'debug', { write: (line) => void log.push(line) });
  const metrics = createMetrics('auth');
  const slowLog = createSlowLog(undefined, metrics, logger);
  const { url } = testDatabase;
  const database = createDatabase({ url, logger, metrics, slowLog, slowQueryMs: 60_000 });
  const keys = await loadSigningKeys(database, keySecret, logger, keyTimes);
  const refreshSecret = await loadSecret(database, 'refresh_token', keySecret);
  const revocations = watchRevocations((after) => revocationsAfter(database.query, after), logger, metrics);
  const app = createAuth({
    issuer,
    database,
    keys,
    refreshSecret,
    revocations,
    failures,
    passwordMinLength: 15,
    identity,
    pushDevices: createPushDevices(undefined, logger),
    logger,
    metrics,
  });
  const server = createServer(app);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** For what opens it itself: commands. */
    databaseUrl: url,
    accounts,
    database,
    keys,
    log,
    metrics,
    addUser: (email: string, password: string, ...roles: Role[]) =>
      ensureUser(accounts, { email, name: 'A Person', password, roles: roles.length ? roles : ['user'] }),
    addClient: (name: string, secret: string, ...scopes: Scope[]) =>
      ensureClient(accounts, { name, secret, scopes }),
    async stop() {
      server.closeAllConnections();
      server.close();
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
