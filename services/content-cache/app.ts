import * as contract from '@content-platform/contract';
import { type AddToAudit, createService, handle, type ServiceOptions } from '@content-platform/chassis';
import type { ContentCache } from './cache/index.ts';
import type { ChangeFeed } from './changes/change-feed.ts';
import { createClearForCaller } from './clear-for-caller.ts';
import type { ContentStore } from './content-store.ts';
import { clearModel } from './endpoints/clear-model.ts';
import { clearPattern } from './endpoints/clear-pattern.ts';
import { deleteFailedJob } from './endpoints/delete-failed-job.ts';
import { deleteFailedJobs } from './endpoints/delete-failed-jobs.ts';
import { listChanges } from './endpoints/list-changes.ts';
import { listContent } from './endpoints/list-content.ts';
import { listFailedJobClasses } from './endpoints/list-failed-job-classes.ts';
import { listFailedJobs } from './endpoints/list-failed-jobs.ts';
import { listInvalidations } from './endpoints/list-invalidations.ts';
import { readContent } from './endpoints/read-content.ts';
import { readFailedJob } from './endpoints/read-failed-job.ts';
import { retryFailedJob } from './endpoints/retry-failed-job.ts';
import { retryFailedJobs } from './endpoints/retry-failed-jobs.ts';
import type { FailedJobStore } from './failed-job-store.ts';
import type { InvalidationLog } from './invalidation-log.ts';
import type { Invalidator } from './invalidator.ts';
import { createJobRetry } from './job-retry.ts';
import type { CacheMetrics } from './metrics.ts';
import type { ModelAccess } from './model-access.ts';
import type { PendingClears } from './pending-clears.ts';

interface ContentCacheDeps extends Omit<ServiceOptions, 'name'> {
  records: ContentStore;
  cache: ContentCache;
  invalidator: Invalidator;
  invalidationLog: InvalidationLog;
  pending: PendingClears;
  jobs: FailedJobStore;
  addToAudit: AddToAudit;
  cacheMetrics: CacheMetrics;
  feed: ChangeFeed;
  access: ModelAccess;
}

export function createContentCacheApp(deps: ContentCacheDeps) {
  const {
    records,
    cache,
    invalidator,
    invalidationLog,
    pending,
    jobs,
    addToAudit,
    cacheMetrics,
    feed,
    access,
    ...options
  } = deps;
  const { logger } = options;
  const clear = createClearForCaller({ clearer: cache, invalidator, pending, logger });
  const retries = createJobRetry(jobs, invalidator, cache);
  return createService({ name: 'content-cache', ...options }, [
    handle(contract.readContent, readContent({ cache, records, metrics: cacheMetrics, access })),
    handle(contract.listContent, listContent({ cache, records, metrics: cacheMetrics, access })),
    handle(contract.listChanges, listChanges({ feed, access })),
    handle(contract.clearModel, clearModel({ clear })),
    handle(contract.clearPattern, clearPattern({ clear })),
    handle(contract.listInvalidations, listInvalidations({ log: invalidationLog })),
    handle(contract.retryFailedJobs, retryFailedJobs({ jobs, retries })),
    handle(contract.listFailedJobs, listFailedJobs({ jobs })),
    handle(contract.listFailedJobClasses, listFailedJobClasses({ jobs })),
    handle(contract.readFailedJob, readFailedJob({ jobs })),
    handle(contract.deleteFailedJob, deleteFailedJob({ jobs, addToAudit, logger })),
    handle(contract.deleteFailedJobs, deleteFailedJobs({ jobs, addToAudit, logger })),
    handle(contract.retryFailedJob, retryFailedJob({ retries })),
  ]);
}
