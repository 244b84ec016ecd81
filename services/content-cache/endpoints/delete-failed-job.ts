import type { Handler, Logger } from '@content-platform/chassis';
import type { deleteFailedJob as contract } from '@content-platform/contract';
import { callerName } from '../clear-for-caller.ts';
import { noSuchJob, type FailedJobStore } from '../failed-job-store.ts';

export function deleteFailedJob({
  jobs,
  logger,
}: {
  jobs: FailedJobStore;
  logger: Logger;
}): Handler<typeof contract> {
  return async ({ caller, params: { id } }) => {
    if (!(await jobs.remove(id))) throw noSuchJob(id);
    // The only record of who deleted the job.
    logger.info({ requested_by: callerName(caller), job_id: id }, 'a failed job was deleted');
    return { status: 204 };
  };
}
