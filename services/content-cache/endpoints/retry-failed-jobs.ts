import { setTimeout as sleep } from 'node:timers/promises';
import type { Handler } from '@content-platform/chassis';
import type { retryFailedJobs as contract } from '@content-platform/contract';
import { callerName } from '../clear-for-caller.ts';
import type { FailedJobStore } from '../failed-job-store.ts';
import type { JobRetry } from '../job-retry.ts';

/** Below the 10 s that the contract allows and that a stopping process waits. */
const maxMs = 8_000;

type Deps = { jobs: FailedJobStore; retries: JobRetry };

export function retryFailedJobs({ jobs, retries }: Deps): Handler<typeof contract> {
  return async ({ body: { dry_run, per_second, ...filter }, caller, signal }) => {
    const { matched } = await jobs.countMatching({ ...filter, state: 'open' });
    const result = { matched, retried: 0, failed: 0 };
    if (dry_run) return { status: 200, body: result };
    const start = performance.now();
    const ids = await jobs.listOpen(filter, Math.ceil((per_second * maxMs) / 1_000));
    for (const [index, id] of ids.entries()) {
      const wait = start + (index * 1_000) / per_second - performance.now();
      if (wait > 0) await sleep(wait, undefined, { signal }).catch(() => undefined);
      if (signal.aborted || performance.now() - start > maxMs) break;
      const tried = await retries.retry(id, callerName(caller));
      // undefined: the job was deleted meanwhile
      if (tried) result[tried.failure ? 'failed' : 'retried'] += 1;
    }
    return { status: 200, body: result };
  };
}
