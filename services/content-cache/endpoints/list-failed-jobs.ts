import type { Handler } from '@content-platform/chassis';
import type { listFailedJobs as contract } from '@content-platform/contract';
import type { FailedJobStore } from '../failed-job-store.ts';

export function listFailedJobs({ jobs }: { jobs: FailedJobStore }): Handler<typeof contract> {
  return async ({ query: { limit, cursor, ...filter } }) => {
    const page = await jobs.list(filter, cursor, limit);
    const next = page.next === null ? null : String(page.next);
    return { status: 200, body: { items: page.jobs, next_cursor: next } };
  };
}
