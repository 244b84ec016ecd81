import type { Handler } from '@content-platform/chassis';
import type { deleteFailedJob as contract } from '@content-platform/contract';
import { noSuchJob, type FailedJobStore } from '../failed-job-store.ts';

export function deleteFailedJob({ jobs }: { jobs: FailedJobStore }): Handler<typeof contract> {
  return async ({ params: { id } }) => {
    if (!(await jobs.remove(id))) throw noSuchJob(id);
    return { status: 204 };
  };
}
