export { isAway } from './away.ts';
export {
  commonConfig,
  ConfigError,
  databaseUrl,
  integer,
  list,
  readConfig,
  redisUrl,
  tokenConfig,
  url,
} from './config.ts';
export { hasBody } from './body.ts';
export { type Breaker, createBreaker } from './breaker.ts';
export { currentContext, runInContext } from './context.ts';
export { deleteOld } from './delete-old.ts';
export { endAfterBody } from './drain.ts';
export { etagOf, ifMatchHolds, isCurrent } from './etag.ts';
export { createIdempotency, type Idempotency, migrateIdempotency } from './idempotency.ts';
export type { Check } from './health.ts';
export { envelope, HttpError, toHttpError, unavailable } from './http-error.ts';
export { createKafka, kafkaConfig } from './kafka.ts';
export { type KeySource, remoteKeys } from './keys.ts';
export { createLogger, type Logger } from './logger.ts';
export { createMetrics, durationBuckets, durations, methodLabel, type Metrics, observe } from './metrics.ts';
export { migrate } from './migrations.ts';
export { comparePaths } from './path-order.ts';
export { createDatabase, type Database } from './postgres.ts';
export { createRedis, type RedisClient, redisTimeoutMs } from './redis.ts';
export {
  type HostPort,
  parseRedisUrl,
  type RedisAccess,
  type RedisAddress,
  sentinelLogin,
} from './redis-address.ts';
export { requestId } from './request-id.ts';
export { type RevocationPage, revocationPage, type Revocations, watchRevocations } from './revocations.ts';
export { run, type Process, type Running } from './run.ts';
export { createService, handle, type Call, type Gate, type Handler, type Route } from './service.ts';
export { createSlots, type Release, type Slots } from './slots.ts';
export { createSlowLog, type SlowLog, type SlowRequest } from './slow-log.ts';
export { tokensFromAuth } from './token-check.ts';
export {
  activeSpan,
  type Attributes,
  beginRequestSpan,
  beginSpan,
  endRequestSpan,
  inSpan,
  type Span,
  traced,
  type TraceHeaders,
} from './tracing.ts';
export { startUpkeep, tidy, type UpkeepSteps } from './upkeep.ts';
export {
  actorOf,
  audience,
  authorize,
  bearerToken,
  createTokenVerifier,
  type Caller,
  type TokenVerifier,
} from './tokens.ts';
