export {
  commonConfig,
  ConfigError,
  databaseUrl,
  integer,
  list,
  readConfig,
  redisUrl,
  serviceSecret,
  serviceUrl,
  tokenConfig,
  url,
} from './config.ts';
export { type AddToAudit, createAuditClient } from './audit.ts';
export { endAfterBody, hasBody } from './request-input.ts';
export { type Breaker, createBreaker } from './concurrency.ts';
export { openDatabase, runCommand } from './command-line.ts';
export { currentContext, requestId, runInContext } from './context.ts';
export { etagOf, matchesIfMatch, matchesIfNoneMatch } from './etag.ts';
export { createIdempotency, type Idempotency, migrateIdempotency } from './idempotency.ts';
export { envelope, HttpError, toHttpError, unavailable } from './http-error.ts';
export { type KeySource, type JwksClient, createJwksClient } from './jwks.ts';
export { createLogger, type Logger } from './logger.ts';
export {
  createMetrics,
  durationBuckets,
  durations,
  methodLabel,
  type Metrics,
  observe,
  statusOf,
} from './metrics.ts';
export { migrate } from './migrations.ts';
export { page } from './page.ts';
export { createDatabase, type Database } from './postgres.ts';
export { prepareDatabases } from './prepare-databases.ts';
export { createRedis, type RedisClient, redisTimeoutMs } from './redis.ts';
export {
  type HostPort,
  parseRedisUrl,
  type RedisAccess,
  type RedisAddress,
  sentinelLogin,
} from './redis-address.ts';
export {
  type RevocationPage,
  fetchRevocationsFrom,
  revocationPage,
  type Revocations,
  watchRevocations,
} from './revocations.ts';
export { deleteExpired, deleteWith, runRetention, startRetention, type RetentionSteps } from './retention.ts';
export { retryUntilAborted } from './retry-until-aborted.ts';
export { comparePaths, requestMethods } from './routing.ts';
export { run, type ProcessContext, type StartedService } from './run.ts';
export { createService, handle, type Call, type Gate, type Handler, type ServiceOptions } from './service.ts';
export { createServiceFetch, requireService, type ServiceFetch } from './service-tokens.ts';
export { createSemaphore, type Release, type Semaphore } from './concurrency.ts';
export { singleFlight } from './concurrency.ts';
export { createSlowLog, type SlowLog, type SlowRequest } from './slow-log.ts';
export { beginRequestSpan, beginSpan, endRequestSpan, inSpan, type Span, traced } from './context.ts';
export {
  actorOf,
  audience,
  authorize,
  bearerToken,
  createTokenVerifier,
  internalScope,
  requireScope,
  tokensFromAuth,
  type Caller,
  type TokenVerifier,
} from './tokens.ts';
export { withTimeout } from './concurrency.ts';
