import type { Handler } from '@content-platform/chassis';
import type { readFailedJob as contract } from '@content-platform/contract';
import { jobNotFound, type FailedJobStore } from '../failed-job-store.ts';

export function readFailedJob({ jobs }: { jobs: FailedJobStore }): Handler<typeof contract> {
  return async ({ params: { id } }) => {
    const job = await jobs.find(id);
    if (!job) throw jobNotFound(id);
    return { status: 200, body: job };
  };
}
