import { randomUUID } from 'node:crypto';
import { Readable, Writable } from 'node:stream';
import { useStarted } from '../../../test/support/use-started.ts';
import {
  createTokenVerifier,
  type Database,
  fetchWithToken,
  watchRevocations,
} from '@content-platform/chassis';
import { openTestService } from '@content-platform/chassis/testing/open-test-service.ts';
import * as contract from '@content-platform/contract';
import { call, type Answer, type CallOptions } from '@content-platform/contract/client';
import { startHttpServer } from '../../../test/support/http-server.ts';
import { holdOpen, untilBlocked } from '../../../test/support/locks.ts';
import { createAccessTokens } from '../access-tokens.ts';
import { ensureClient, ensureUser, withAccounts } from '../accounts.ts';
import { createAuth } from '../app.ts';
import type { Command } from '../commands/command.ts';
import type { IdentitySettings } from '../identity/settings.ts';
import { loadOrCreateKeys } from '../keys/key-rotation.ts';
import { loadSecret } from '../keys/secret-store.ts';
import { loadSigningKeys } from '../keys/signing-keys.ts';
import { createMailMetrics } from '../metrics.ts';
import { createMailer } from '../password-reset/mailer.ts';
import { startSendingMails } from '../password-reset/send-mails.ts';
import { createPersonalData } from '../personal-data.ts';
import { createPasswords } from '../passwords/passwords.ts';
import { createRevocationFeed } from '../sessions/revocation-feed.ts';
import { createPushDevices } from '../sessions/push-devices.ts';
import { createAuthDatabase } from '../stores.ts';
import { createMemoryFailures } from '../throttle/failures.ts';
import { createLoginThrottle, loginBackoff } from '../throttle/login-throttle.ts';

export const issuer = 'http://platform.test';
export const keySecret = 'a secret for tests, long enough to be taken';
export const password = 'wooden lantern drifts past nine';

/** Waits after failed logins that do not end while a test runs. */
export const longBackoff = { windowMs: 900_000, shortestMs: 600_000, longestMs: 900_000 };

/** The defaults of the settings, without an identity provider. */
export const noIdentity: IdentitySettings = {
  name: 'identity',
  provider: undefined,
  returnTo: [],
  linkByEmail: false,
  allowUnverified: false,
  suborgsClaim: 'suborgs',
};

/** Runs a command on this database and returns its output. */
export function runCommand(url: string, command: Command, args: string[], input: string | Buffer = '') {
  return command(args, {
    input: Readable.from([Buffer.from(input)]),
    prompts: new Writable(),
    withAccounts: (work) => withAccounts(url, work),
  });
}

/** The parts of the service on a new database, which has a signing key. */
export const openAuthService = () =>
  openTestService('auth', (url) => withAccounts(url, (accounts) => loadOrCreateKeys(accounts, keySecret)));

export const devicesSecret = 'the-secret-of-the-devices-service';

export async function startAuth({
  identity = noIdentity,
  backoff = loginBackoff,
  mfaRoles = [] as readonly contract.Role[],
  sendsMail = false,
} = {}) {
  const service = await openAuthService();
  const { database, logger, metrics } = service;
  const stores = createAuthDatabase(database);
  const accounts = { ...stores, passwords: createPasswords() };
  const keys = await loadSigningKeys(stores, keySecret, logger);
  const refreshSecret = await loadSecret(stores.secrets, 'refresh_token', keySecret);
  const totpKey = await loadSecret(stores.secrets, 'totp', keySecret);
  const resetKey = sendsMail ? await loadSecret(stores.secrets, 'password_reset', keySecret) : undefined;
  const mails = createMailMetrics(metrics);
  const revocationFeed = createRevocationFeed(stores);
  const revocations = watchRevocations(revocationFeed.read, logger, metrics);
  let equalized = 0;
  const tokens = createAccessTokens(issuer, keys, mfaRoles);
  const verifier = createTokenVerifier(issuer, keys, revocations);
  const fetchAsService = fetchWithToken(() => tokens.forService('auth'));
  const app = createAuth({
    issuer,
    database: stores,
    keys,
    refreshSecret,
    tokens,
    verifier,
    throttle: createLoginThrottle(createMemoryFailures(), backoff),
    passwordMinLength: 15,
    totpKey,
    resetKey,
    identity,
    pushDevices: createPushDevices(undefined, fetchAsService, logger),
    personalData: createPersonalData({}, fetchAsService),
    equalizeFailureTime: async () => void (equalized += 1),
    logger,
    metrics,
  });
  const { origin, close } = await startHttpServer(app);

  const ask = <E extends contract.Endpoint>(endpoint: E, options?: CallOptions<E>) =>
    call(origin, endpoint, options);

  const addUser = (email: string, own: string, ...roles: contract.Role[]) =>
    ensureUser(accounts, { email, name: 'A Person', password: own, roles: roles.length ? roles : ['user'] });
  const logIn = (email: string, given = password, headers: Record<string, string> = {}) =>
    ask(contract.login, { body: { email, password: given }, headers });

  return {
    ...service,
    origin,
    ask,
    /** The stores, and the functions that hash passwords for them. */
    accounts,
    stores,
    keys,
    refreshSecret,
    tokens,
    /** The dependencies of the internal listener, which knows the service `devices`. */
    internal: {
      feeds: stores,
      revocationFeed,
      users: stores.users,
      audit: stores.audit,
      serviceSecrets: [`devices:${devicesSecret}`],
      issueToken: tokens.forService,
      verifier,
      logger,
    },
    /** The number of failed logins that were delayed to the common duration. */
    equalized: () => equalized,
    /** Returns the audit entries of the user with this event, newest first, without ids and times. */
    async audited(userId: number, event: contract.AuditEvent) {
      const entries = await stores.audit.list({ userId, event }, undefined, 100);
      return entries.map(({ actor, address, details }) => ({ actor, address, details }));
    },
    /** Makes the logins of all sessions of the user 16 minutes old. */
    ageLogins: (userId: number) =>
      database.query(
        'test',
        `UPDATE auth.session SET created_at = now() - interval '16 minutes' WHERE user_id = $1`,
        [userId],
      ),
    addUser,
    addClient: (name: string, secret: string, ...scopes: contract.Scope[]) =>
      ensureClient(accounts, { name, secret, scopes }),
    logIn,
    async person(headers: Record<string, string> = {}, ...roles: contract.Role[]) {
      const email = `${randomUUID()}@example.com`;
      await addUser(email, password, ...roles);
      const { body } = await logIn(email, password, headers);
      const { token, refresh_token: refreshToken, user } = body!;
      return { id: user.id, email, token, refreshToken, sessionId: Number(decode(token).claims['sid']) };
    },
    /** Sends mails through the server at this port until the returned function is called. */
    sendMails(port: number, { pauseSeconds = 30, waitMs = 10_000, requireTLS = false } = {}) {
      const smtp = { host: '127.0.0.1', port, secure: false, requireTLS, ignoreTLS: !requireTLS };
      const mailer = createMailer({ smtp, from: 'Platform <no-reply@example.com>' }, waitMs);
      const resetUrl = 'https://app.example.com/reset';
      const deps = { database: stores, mailer, resetUrl, resetKey: resetKey!, mails, logger };
      return startSendingMails(deps, { everyMs: 20, pauseSeconds });
    },
    refresh: (refresh_token: string) =>
      ask(contract.token, { body: { grant_type: 'refresh_token', refresh_token } }),
    askAsClient: (client_id: string, client_secret: string, headers: Record<string, string> = {}) =>
      ask(contract.token, { body: { grant_type: 'client_credentials', client_id, client_secret }, headers }),
    /** Sends a request that waits for locks of a transaction which has done `work`, and then ends. Returns the reply. */
    async whileHeld<T>(work: (query: Database['query']) => Promise<unknown>, request: () => Promise<T>) {
      const commit = await holdOpen(database, work);
      const reply = request();
      await untilBlocked(database);
      await commit();
      return reply;
    },
    /** Returns whether the service already refuses this access token. */
    isRefused: async (token: string) => (await ask(contract.me, { token })).error?.error === 'invalid_token',
    run: (command: Command, args: string[], input: string | Buffer = '') =>
      runCommand(service.databaseUrl, command, args, input),
    async stop() {
      close();
      await revocations.close();
      await keys.close();
      await service.close();
    },
  };
}
export type TestAuth = Awaited<ReturnType<typeof startAuth>>;

/** Starts the service before the tests of a file, and stops it afterwards. Only tests and hooks may use the result. */
export function useAuth(options: Parameters<typeof startAuth>[0] = {}): TestAuth {
  return useStarted(() => startAuth(options));
}

/** Returns the number of statements that the service ran under this name. */
export async function queriesOf({ metrics }: TestAuth, operation: string): Promise<number> {
  const { values } = await metrics.queryDuration.get();
  const isCount = ({ labels, metricName }: (typeof values)[number]) =>
    labels['operation'] === operation && metricName?.endsWith('_count');
  return values.find(isCount)?.value ?? 0;
}

/** Returns what a client sees of a reply, without the parts that differ in every reply. */
export function visible({
  status,
  error,
  headers,
}: Pick<Answer<contract.Endpoint>, 'status' | 'error' | 'headers'>) {
  const seen = Object.fromEntries(headers);
  for (const name of ['date', 'x-request-id', 'retry-after']) delete seen[name];
  // Removes the duration of the database calls, which varies; their number stays.
  seen['server-timing'] = seen['server-timing']!.replace(/dur=[\d.]+/, '');
  return { status, error: { ...error, request_id: '' }, headers: seen };
}

/** Returns the header and claims of a token without checking it. */
export function decode(token: string): { header: Record<string, unknown>; claims: Record<string, unknown> } {
  const [header, claims] = token
    .split('.', 2)
    .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>);
  return { header: header!, claims: claims! };
}

/** Returns the reason for which a refresh token or code was refused. */
export const reasonOf = ({ error }: Awaited<ReturnType<TestAuth['refresh']>>) =>
  error?.error === 'invalid_grant' ? error.details?.[0]?.message : error?.error;
