import type { FailedJobClass } from '@content-platform/contract';
import type { Clearing } from './cache/index.ts';
import { parseEvent } from './events/parse-event.ts';
import type { FailedJobStore, StoredJob } from './failed-job-store.ts';
import type { Invalidator } from './invalidator.ts';

export interface RetryFailure {
  class: FailedJobClass;
  error: string;
}

export type JobRetry = ReturnType<typeof createJobRetry>;

/** Processes failed jobs again, as the consumer would today: a newer version may know what an older one did not. */
export function createJobRetry(jobs: FailedJobStore, invalidator: Invalidator, clearing: Clearing) {
  async function process(job: StoredJob, requestedBy: string): Promise<RetryFailure | undefined> {
    const requester = { source: 'retry', requestedBy } as const;
    if (job.class === 'events_lost') {
      await invalidator.clearAll(clearing, requester);
      return undefined;
    }
    const parsed = parseEvent(job.value);
    if (!parsed.ok) return parsed.failure;
    await invalidator.clear(clearing, parsed.event.target, requester);
    return undefined;
  }

  return {
    /**
     * The job as it is after another try, and its new failure if it failed again; undefined when there is no such job.
     * Throws what the cache throws: then it was not tried.
     */
    async retry(id: number, requestedBy: string) {
      const stored = await jobs.load(id);
      if (!stored) return undefined;
      const failure = await process(stored, requestedBy);
      const job = await jobs.noteRetry(id, failure);
      return job && { job, failure };
    },
  };
}
