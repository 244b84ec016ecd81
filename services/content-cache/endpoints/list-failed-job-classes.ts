import type { Handler } from '@content-platform/chassis';
import type { listFailedJobClasses as contract } from '@content-platform/contract';
import type { FailedJobStore } from '../failed-job-store.ts';

export function listFailedJobClasses({ jobs }: { jobs: FailedJobStore }): Handler<typeof contract> {
  return async ({ query }) => ({ status: 200, body: { items: await jobs.groups(query) } });
}
