import { CacheError, type CacheClearer } from './cache/index.ts';
import { cacheUnavailable } from './clear-for-caller.ts';
import { isAnnouncement, parseEvent, type Unprocessable } from './events/parse-event.ts';
import type { FailedJobStore, StoredJob } from './failed-job-store.ts';
import type { Invalidator } from './invalidator.ts';

export type JobRetry = ReturnType<typeof createJobRetry>;

/** Retries failed jobs: a newer version of the service may accept an event that an older version refused. */
export function createJobRetry(jobs: FailedJobStore, invalidator: Invalidator, clearer: CacheClearer) {
  async function process(job: StoredJob, requestedBy: string): Promise<Unprocessable | undefined> {
    const requester = { source: 'retry', requestedBy } as const;
    if (job.class === 'events_lost') {
      await invalidator.clearAll(clearer, requester);
      return undefined;
    }
    const parsed = parseEvent(job.value);
    if (!isAnnouncement(parsed)) return parsed;
    await invalidator.clear(clearer, parsed.target, requester);
    return undefined;
  }

  return {
    /**
     * Retries a job. Returns its new state, and its new failure if any; undefined if there is no such job. Throws 503 if the
     * cache refuses: then the job is unchanged.
     */
    async retry(id: number, requestedBy: string) {
      const stored = await jobs.load(id);
      if (!stored) return undefined;
      const failure = await process(stored, requestedBy).catch((error: unknown) => {
        if (!(error instanceof CacheError)) throw error;
        throw cacheUnavailable('The cache cannot be cleared now: the job stays open.', error);
      });
      const job = await jobs.recordRetry(id, failure);
      return job && { job, failure };
    },
  };
}
