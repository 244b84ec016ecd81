export { isAway } from './away.ts';
export {
  authUrl,
  commonConfig,
  ConfigError,
  databaseUrl,
  integer,
  list,
  readConfig,
  redisUrl,
  url,
} from './config.ts';
export { hasBody } from './body.ts';
export { currentContext, runInContext } from './context.ts';
export { etagOf, isCurrent } from './etag.ts';
export type { Check } from './health.ts';
export { envelope, HttpError, toHttpError, unavailable } from './http-error.ts';
export { createKafka, kafkaConfig } from './kafka.ts';
export { remoteKeys, type KeySource } from './keys.ts';
export { createLogger, type Logger } from './logger.ts';
export { createMetrics, durationBuckets, methodLabel, type Metrics } from './metrics.ts';
export { migrate } from './migrations.ts';
export { comparePaths } from './path-order.ts';
export { createDatabase, type Database } from './postgres.ts';
export { createRedis, redisTimeoutMs } from './redis.ts';
export { requestId } from './request-id.ts';
export { run, type Process, type Running } from './run.ts';
export { createService, handle, type Call, type Handler, type Route } from './service.ts';
export { createSlowLog, type SlowLog, type SlowRequest } from './slow-log.ts';
export {
  audience,
  authorize,
  bearerToken,
  createTokenVerifier,
  type Caller,
  type TokenVerifier,
} from './tokens.ts';
