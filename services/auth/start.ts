import {
  type ConfigOf,
  connectDatabase,
  createRedis,
  createTokenVerifier,
  fetchWithToken,
  migrateService,
  type ProcessContext,
  startRetention,
  watchRevocations,
} from '@content-platform/chassis';
import { exporters, internalUrlVariable } from '@content-platform/contract';
import { createAccessTokens } from './access-tokens.ts';
import { createAuth } from './app.ts';
import { startAuditChain } from './audit-chain.ts';
import { type authConfig, blocklistIn } from './config.ts';
import { startErasure } from './erasure.ts';
import { identitySettings } from './identity/settings.ts';
import { createInternal } from './internal.ts';
import { createMailMetrics } from './metrics.ts';
import { createMailer } from './password-reset/mailer.ts';
import { startSendingMails } from './password-reset/send-mails.ts';
import { mailSettings } from './password-reset/settings.ts';
import { createPersonalData } from './personal-data.ts';
import { createRevocationFeed } from './sessions/revocation-feed.ts';
import { createPushDevices } from './sessions/push-devices.ts';
import { createLoginThrottle } from './throttle/login-throttle.ts';
import { createSharedFailures } from './throttle/shared-failures.ts';
import { loadSecret } from './keys/secret-store.ts';
import { loadSigningKeys } from './keys/signing-keys.ts';
import { retention } from './retention.ts';
import { createAuthDatabase, createStores } from './stores.ts';

/** Starts auth, also without Redis. Throws ConfigError for invalid settings, also if they do not decrypt the keys. */
export async function startAuthService(service: ProcessContext<ConfigOf<typeof authConfig>>) {
  const { config, logger, metrics, onStop } = service;
  const { DATABASE_URL: url, AUTH_KEY_SECRET: keySecret } = config;
  const identity = identitySettings(config);
  const mail = mailSettings(config);
  const blocklist = blocklistIn(config.PASSWORD_BLOCKLIST_FILE);
  await migrateService('auth', url, logger);
  const pool = connectDatabase(service, url);
  const database = createAuthDatabase(pool);
  const keys = await loadSigningKeys(database, keySecret, logger);
  onStop(keys.close);
  const refreshSecret = await loadSecret(database.secrets, 'refresh_token', keySecret);
  const totpKey = await loadSecret(database.secrets, 'totp', keySecret);
  const resetKey = mail && (await loadSecret(database.secrets, 'password_reset', keySecret));
  // Separate connections, so that other processes learn of a logout in time during many logins.
  const feeds = createStores(connectDatabase(service, url, { maxConnections: 2 }).query);
  const revocationFeed = createRevocationFeed(feeds);
  const revocations = watchRevocations(revocationFeed.read, logger, metrics);
  onStop(revocations.close);
  onStop(revocationFeed.close);
  const redis = createRedis(config.REDIS_URL, logger);
  onStop(() => redis.disconnect());
  onStop(startRetention(pool.query, retention, logger));
  onStop(startAuditChain(database, logger));
  startErasure(service, pool.query);
  const mails = createMailMetrics(metrics);
  if (mail && resetKey) {
    const mailer = createMailer(mail);
    onStop(startSendingMails({ database, mailer, resetUrl: mail.resetUrl, resetKey, mails, logger }));
  }
  const { PUBLIC_URL: issuer, PASSWORD_MIN_LENGTH: passwordMinLength } = config;
  const tokens = createAccessTokens(issuer, keys, config.MFA_REQUIRED_ROLES);
  const verifier = createTokenVerifier(issuer, keys, revocations);
  const fetchAsService = fetchWithToken(() => tokens.forService('auth'));
  if (blocklist) logger.info({ passwords: blocklist.size }, 'loaded the password blocklist');
  return {
    app: createAuth({
      issuer,
      database,
      keys,
      refreshSecret,
      tokens,
      verifier,
      throttle: createLoginThrottle(createSharedFailures(redis, logger)),
      passwordMinLength,
      totpKey,
      resetKey,
      blocklist,
      identity,
      pushDevices: createPushDevices(config.DEVICES_INTERNAL_URL, fetchAsService, logger),
      personalData: createPersonalData(
        Object.fromEntries(
          exporters.map(({ name, exportsAs }) => [exportsAs, config[internalUrlVariable(name)]]),
        ),
        fetchAsService,
      ),
      logger,
      metrics,
    }),
    internal: createInternal({
      feeds,
      revocationFeed,
      users: database.users,
      audit: database.audit,
      serviceSecrets: config.SERVICE_SECRETS,
      issueToken: tokens.forService,
      verifier,
      logger,
    }),
    checks: {
      postgres: { required: true, check: () => pool.ping() },
      tokens: {
        required: true,
        async check() {
          // The getter throws while no key can sign.
          void keys.current;
          if (!revocations.isLoaded()) throw new Error('tokens cannot be checked yet');
        },
      },
      // Without Redis this process counts failed logins itself.
      redis: { required: false, check: () => redis.ping() },
    },
  };
}
