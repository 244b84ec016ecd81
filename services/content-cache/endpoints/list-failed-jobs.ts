import type { Handler } from '@content-platform/chassis';
import type { listFailedJobs as contract } from '@content-platform/contract';
import type { FailedJobStore } from '../failed-job-store.ts';

export function listFailedJobs({ jobs }: { jobs: FailedJobStore }): Handler<typeof contract> {
  return async ({ query: { limit, cursor, ...filter } }) => ({
    status: 200,
    body: await jobs.list(filter, cursor, limit),
  });
}
