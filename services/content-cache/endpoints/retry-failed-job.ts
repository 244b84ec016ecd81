import { HttpError, type Handler } from '@content-platform/chassis';
import type { retryFailedJob as contract } from '@content-platform/contract';
import { callerName } from '../clear-for-caller.ts';
import { jobNotFound } from '../failed-job-store.ts';
import type { JobRetry } from '../job-retry.ts';

export function retryFailedJob({ retries }: { retries: JobRetry }): Handler<typeof contract> {
  return async ({ params: { id }, caller }) => {
    const result = await retries.retry(id, callerName(caller));
    if (!result) throw jobNotFound(id);
    const { job, failure } = result;
    if (failure) throw new HttpError('retry_failed', `The retry failed: ${failure.class}: ${job.error}`);
    return { status: 200, body: job };
  };
}
