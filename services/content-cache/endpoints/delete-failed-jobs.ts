import type { AddToAudit, Handler, Logger } from '@content-platform/chassis';
import type { deleteFailedJobs as contract } from '@content-platform/contract';
import { callerName } from '../clear-for-caller.ts';
import type { FailedJobStore } from '../failed-job-store.ts';

/** Time after which no more statements start: each may take 5 s, and the contract allows 10 s for the call. */
const maxMs = 4_000;

interface Deps {
  jobs: Pick<FailedJobStore, 'countMatching' | 'removeMatching'>;
  addToAudit: AddToAudit;
  logger: Logger;
}

export function deleteFailedJobs({ jobs, addToAudit, logger }: Deps): Handler<typeof contract> {
  return async ({ body: { dry_run, ...filter }, caller, address, signal }) => {
    const start = performance.now();
    // Only counted jobs are deleted: jobs that arrive later stay.
    const { matched, newest } = await jobs.countMatching(filter);
    if (dry_run) return { status: 200, body: { matched, deleted: 0 } };
    let deleted = 0;
    const isOver = () => signal.aborted || performance.now() - start > maxMs;
    try {
      while (deleted < matched && !isOver()) {
        const count = await jobs.removeMatching(filter, newest);
        if (count === 0) break;
        deleted += count;
      }
    } finally {
      if (deleted > 0) {
        const details = { filter, matched, deleted };
        const audited = await addToAudit({ event: 'failed_jobs_deleted', caller, address, details });
        logger.info({ requested_by: callerName(caller), ...details, audited }, 'failed jobs were deleted');
      }
    }
    return { status: 200, body: { matched, deleted } };
  };
}
