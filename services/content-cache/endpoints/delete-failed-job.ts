import type { AddToAudit, Handler, Logger } from '@content-platform/chassis';
import type { deleteFailedJob as contract } from '@content-platform/contract';
import { callerName } from '../clear-for-caller.ts';
import { jobNotFound, type FailedJobStore } from '../failed-job-store.ts';

export function deleteFailedJob({
  jobs,
  addToAudit,
  logger,
}: {
  jobs: FailedJobStore;
  addToAudit: AddToAudit;
  logger: Logger;
}): Handler<typeof contract> {
  return async ({ caller, address, params: { id } }) => {
    if (!(await jobs.remove(id))) throw jobNotFound(id);
    const details = { job_id: id };
    const audited = await addToAudit({ event: 'failed_jobs_deleted', caller, address, details });
    logger.info({ requested_by: callerName(caller), ...details, audited }, 'a failed job was deleted');
    return { status: 204 };
  };
}
