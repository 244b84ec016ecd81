import type { ConfigOf, tokenConfig } from './config.ts';
import { type ErasureOptions, fetchDeletedUsersFrom, followDeletedUsers } from './erasure.ts';
import type { Check } from './health.ts';
import { createJwksClient } from './jwks.ts';
import { createDatabase, type Database, type DatabaseOptions } from './postgres.ts';
import { fetchRevocationsFrom, watchRevocations } from './revocations.ts';
import type { CommonConfig, ProcessContext } from './run.ts';
import type { ServiceFetch } from './service-tokens.ts';
import { createTokenVerifier, type TokenVerifier } from './tokens.ts';

/** Opens connections to the database at `url`, which are closed when the process stops. */
export function connectDatabase(
  { config, logger, metrics, slowLog, onStop }: ProcessContext<CommonConfig>,
  url: string,
  limits: Pick<DatabaseOptions, 'maxConnections' | 'statementTimeoutMs'> = {},
): Database {
  const { SLOW_QUERY_MS: slowQueryMs } = config;
  const database = createDatabase({ url, logger, metrics, slowLog, slowQueryMs, ...limits });
  onStop(database.close);
  return database;
}

/**
 * Checks tokens with the keys and revocations that auth publishes. `check` passes once both were fetched: then the
 * process works even if auth is unavailable.
 */
export function tokensFromAuth({
  config,
  logger,
  metrics,
  onStop,
}: ProcessContext<CommonConfig & ConfigOf<typeof tokenConfig>>): TokenVerifier & { check: Check } {
  const keys = createJwksClient(`${config.AUTH_URL}/.well-known/jwks.json`, logger);
  const fetchRevocations = fetchRevocationsFrom(config.AUTH_INTERNAL_URL);
  const revocations = watchRevocations(fetchRevocations, logger, metrics, keys.setPublished);
  onStop(() => Promise.all([keys.close(), revocations.close()]));
  const check = async () => {
    if (!keys.isLoaded() || !revocations.isLoaded())
      throw new Error('the signing keys or the revocations were not fetched yet');
  };
  return { ...createTokenVerifier(config.PUBLIC_URL, keys, revocations), check: { required: true, check } };
}

/** Erases the users whom auth deletes, until the process stops. */
export function eraseDeletedUsers(
  { config, logger, onStop }: ProcessContext<CommonConfig & ConfigOf<typeof tokenConfig>>,
  fetchAsService: ServiceFetch,
  options: ErasureOptions,
): void {
  const fetchPage = fetchDeletedUsersFrom(config.AUTH_INTERNAL_URL, fetchAsService);
  onStop(followDeletedUsers(fetchPage, options, logger));
}
