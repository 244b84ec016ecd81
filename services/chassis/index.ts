export { type AddToAudit, createAuditClient } from './audit.ts';
export { openDatabase, runCommand } from './command-line.ts';
export {
  type Breaker,
  createBreaker,
  createSemaphore,
  type Release,
  type Semaphore,
  singleFlight,
  withTimeout,
} from './concurrency.ts';
export { connectDatabase, tokensFromAuth } from './connections.ts';
export {
  commonConfig,
  ConfigError,
  type ConfigOf,
  databaseUrl,
  flag,
  integer,
  list,
  readConfig,
  redisUrl,
  serviceSecret,
  serviceUrl,
  tokenConfig,
  url,
} from './config.ts';
export {
  beginRequestSpan,
  beginSpan,
  currentContext,
  endRequestSpan,
  inSpan,
  requestId,
  runInContext,
  type Span,
  traced,
} from './context.ts';
export { etagOf, matchesIfMatch, matchesIfNoneMatch } from './etag.ts';
export { envelope, HttpError, invalidFields, toHttpError, unavailable } from './http-error.ts';
export { createIdempotency, type Idempotency, migrateIdempotency } from './idempotency.ts';
export { createInternalEndpoints } from './internal-endpoints.ts';
export { createJwksClient, type KeySource } from './jwks.ts';
export { repliesOf } from './listen.ts';
export { createLogger, type Logger } from './logger.ts';
export { createMetrics, durationBuckets, methodLabel, type Metrics, observe, statusOf } from './metrics.ts';
export { migrate } from './migrations.ts';
export { page } from './page.ts';
export { createDatabase, type Database } from './postgres.ts';
export { prepareDatabases } from './prepare-databases.ts';
export {
  type HostPort,
  parseRedisUrl,
  type RedisAccess,
  type RedisAddress,
  sentinelLogin,
} from './redis-address.ts';
export { createRedis, type RedisClient, redisTimeoutMs } from './redis.ts';
export { repeat, retryUntilAborted } from './repeat.ts';
export { bodyTooLarge, checkBodyHeaders, endAfterBody, hasBody } from './request-input.ts';
export { deleteExpired, deleteWith, type RetentionSteps, runRetention, startRetention } from './retention.ts';
export {
  fetchRevocationsFrom,
  revocationPage,
  type RevocationPage,
  type Revocations,
  watchRevocations,
} from './revocations.ts';
export { comparePaths, requestMethods } from './routing.ts';
export { type ProcessContext, run, type StartedService } from './run.ts';
export { createServiceFetch, type ServiceFetch } from './service-tokens.ts';
export { type Call, createService, type Gate, handle, type Handler, type ServiceOptions } from './service.ts';
export { createSlowLog, type SlowLog, type SlowRequest } from './slow-log.ts';
export {
  actorOf,
  audience,
  authorize,
  bearerToken,
  type Caller,
  createTokenVerifier,
  internalScope,
  requireScope,
  type TokenVerifier,
} from './tokens.ts';
