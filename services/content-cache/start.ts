import {
  ConfigError,
  type ConfigOf,
  createAuditClient,
  connectDatabase,
  createServiceFetch,
  deleteExpired,
  eraseDeletedUsers,
  migrateService,
  startRetention,
  tokensFromAuth,
  type Logger,
  type ProcessContext,
  type RetentionSteps,
  type StartedService,
} from '@content-platform/chassis';
import { createContentCacheApp } from './app.ts';
import { UnsupportedRedis, createContentCache, type CacheState } from './cache/index.ts';
import { createChangeFeed } from './changes/change-feed.ts';
import { createChangeLog } from './changes/change-log.ts';
import { clearUnannouncedChanges, type ChangeTiming } from './changes/follower.ts';
import { watchMissedChanges } from './changes/missed-changes.ts';
import type { contentCacheConfig } from './config.ts';
import { createContentStore } from './content-store.ts';
import { startEvents, type EventsOptions } from './events/events.ts';
import { createFailedJobStore } from './failed-job-store.ts';
import { createInvalidationLog, eraseRequesters } from './invalidation-log.ts';
import { createInvalidator } from './invalidator.ts';
import { createKafka } from './kafka.ts';
import { createCacheMetrics, measureAtScrape } from './metrics.ts';
import { createPendingClears } from './pending-clears.ts';
import { warnOfReplicas } from './cache/redis/replica-advice.ts';

/** Statement timeout of reads, a little shorter than a reader's lease. */
const contentReadMs = 2_000;

/** Deletes failed jobs 30 days after their retry, and rows of the invalidation log and tombstones after 30 days. */
export const retention: RetentionSteps = (query) => ({
  'failed jobs': () => createFailedJobStore(query).deleteRetried(),
  tombstones: () => createChangeLog(query).purge(),
  invalidations: () =>
    deleteExpired(query, 'clean_invalidations', 'content.invalidation', `at < now() - interval '30 days'`),
});

const logState = (logger: Logger) => (state: CacheState, error?: Error) => {
  if (state === 'unavailable') logger.warn({ error }, 'Redis unreachable; reads bypass the cache');
  else if (state === 'partial')
    logger.warn({ error }, 'Redis partly unreachable; reads of its keys bypass the cache');
  else logger.info({ state }, 'cache state changed');
};

/** Waits for PostgreSQL, connects to the stores and builds the app. Throws ConfigError for an unsupported Redis. */
export async function startContentCache(
  process: ProcessContext<ConfigOf<typeof contentCacheConfig>>,
  forTests: Pick<EventsOptions, 'topic' | 'group' | 'sessionTimeoutMs'> & {
    changes?: ChangeTiming | undefined;
  } = {},
): Promise<StartedService> {
  const { config, logger, metrics, onStop } = process;
  const { DATABASE_URL: url } = config;
  await migrateService('content-cache', url, logger);
  // A separate pool for reads, so that no other query delays them.
  const contentDatabase = connectDatabase(process, url, { statementTimeoutMs: contentReadMs });
  const database = connectDatabase(process, url, { maxConnections: 5 });

  const cacheMetrics = createCacheMetrics(metrics);
  const invalidationLog = createInvalidationLog(database.query, logger);
  onStop(() => invalidationLog.close());
  const invalidator = createInvalidator(invalidationLog, cacheMetrics);
  const pending = createPendingClears(database.query, invalidator, logger);
  const jobs = createFailedJobStore(database.query);
  onStop(startRetention(database.query, retention, logger));

  const cache = createContentCache({
    url: config.REDIS_URL,
    ttlMs: config.CACHE_TTL * 1_000,
    negativeTtlMs: config.CACHE_NEGATIVE_TTL * 1_000,
    unmanagedKeys: config.CACHE_UNMANAGED_KEYS,
    replicaGuard: { atLeast: config.CACHE_MIN_REPLICAS, maxLagSeconds: config.CACHE_REPLICA_MAX_LAG },
    recover: (clearer, isWhole) => (isWhole ? pending.carryOut : pending.carryOutForPrimary)(clearer),
    onStateChange: logState(logger),
  });
  onStop(() => cache.close());
  await cache.start().catch((error: unknown) => {
    throw error instanceof UnsupportedRedis ? new ConfigError(`REDIS_URL: ${error.message}`) : error;
  });

  const kafka = createKafka(config, 'content-cache', logger);
  const deps = { invalidator, jobs, metrics: cacheMetrics, logger };
  const events = kafka && startEvents({ kafka, clearer: cache, ...deps, ...forTests });
  measureAtScrape(metrics, {
    memory: cache.memory,
    openJobs: async () => (await jobs.countMatching({ state: 'open' })).matched,
    waitingEvents: events?.waitingEvents ?? (() => 0),
    pendingClears: pending.count,
  });
  onStop(() => events?.stop());

  const { changes: timing } = forTests;
  const missed = watchMissedChanges({
    query: database.query,
    pending,
    isQueueEmpty: events?.isQueueEmpty ?? (() => Promise.resolve(true)),
    metrics: cacheMetrics,
    logger,
    missedAfterMs: timing?.missedAfterMs,
  });
  onStop(missed.stop);
  onStop(clearUnannouncedChanges({ database, cache, invalidator, missed, logger, timing }));
  onStop(pending.watch(cache));
  onStop(warnOfReplicas(cache, logger));
  const tokens = tokensFromAuth(process);
  const { AUTH_INTERNAL_URL: authInternalUrl, SERVICE_SECRET: secret } = config;
  const fetchAsService = createServiceFetch(authInternalUrl, 'content-cache', secret);
  const { query } = database;
  const erase = (ids: readonly number[]) => eraseRequesters(query, ids);
  eraseDeletedUsers(process, fetchAsService, { erase, query, schema: 'content' });

  return {
    // A request without a body emits no `end` or `close`: these events took 3 µs of a cached read.
    server: { optimizeEmptyRequests: true },
    app: createContentCacheApp({
      records: createContentStore(contentDatabase.query),
      cache,
      invalidator,
      log: invalidationLog,
      pending,
      jobs,
      addToAudit: createAuditClient(authInternalUrl, fetchAsService, logger),
      cacheMetrics,
      feed: createChangeFeed(contentDatabase.query),
      restricted: config.CONTENT_RESTRICTED_MODELS,
      unlisted: config.CONTENT_UNLISTED_MODELS,
      tokens,
      logger,
      metrics,
    }),
    checks: {
      postgres: { required: true, check: () => contentDatabase.ping() },
      tokens: tokens.check,
      redis: {
        required: false,
        async check() {
          // A partly unreachable Redis also fails the check.
          if (cache.state !== 'usable') throw new Error('unavailable');
        },
      },
      ...(events ? { kafka: { required: false, check: events.check } } : {}),
    },
  };
}
