import type { Handler, Logger } from '@content-platform/chassis';
import type { deleteFailedJobs as contract } from '@content-platform/contract';
import { callerName } from '../clear-for-caller.ts';
import type { FailedJobStore } from '../failed-job-store.ts';

/** Time after which no more statements start: each may take 5 s, and the contract allows 10 s for the call. */
const maxMs = 4_000;

type Jobs = Pick<FailedJobStore, 'match' | 'removeSome'>;

export function deleteFailedJobs({ jobs, logger }: { jobs: Jobs; logger: Logger }): Handler<typeof contract> {
  return async ({ body: { dry_run, ...filter }, caller, signal }) => {
    const start = performance.now();
    // Only counted jobs are deleted: jobs that arrive later stay.
    const { matched, newest } = await jobs.match(filter);
    if (dry_run) return { status: 200, body: { matched, deleted: 0 } };
    let deleted = 0;
    const isOver = () => signal.aborted || performance.now() - start > maxMs;
    try {
      while (deleted < matched && !isOver()) {
        const count = await jobs.removeSome(filter, newest);
        if (count === 0) break;
        deleted += count;
      }
    } finally {
      // The only record of who deleted the jobs.
      if (deleted > 0)
        logger.info(
          { requested_by: callerName(caller), filter, matched, deleted },
          'failed jobs were deleted',
        );
    }
    return { status: 200, body: { matched, deleted } };
  };
}
