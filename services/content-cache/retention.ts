import { deleteExpired, type RetentionSteps } from '@content-platform/chassis';
import { createChangeLog } from './changes/change-log.ts';
import { createFailedJobStore } from './failed-job-store.ts';

/** Deletes failed jobs 30 days after their retry, and rows of the invalidation log and tombstones after 30 days. */
export const retention: RetentionSteps = (query) => ({
  'failed jobs': () => createFailedJobStore(query).deleteRetried(),
  tombstones: () => createChangeLog(query).purge(),
  invalidations: () =>
    deleteExpired(query, 'clean_invalidations', 'content.invalidation', `at < now() - interval '30 days'`),
});
