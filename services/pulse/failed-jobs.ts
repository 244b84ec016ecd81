import { listFailedJobClasses, retryFailedJob, type PulseReport } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';

/** A page waits so long for the list, and a person so long for a job. */
const listMs = 2_000;
const retryMs = 9_000;

export type Outcome = 'done' | 'failed' | 'gone' | 'unavailable';
const outcomes: Record<number, Outcome> = { 200: 'done', 409: 'failed', 404: 'gone' };

/** The failed jobs of the content-cache at `url`, for who has the token. */
export function createFailedJobs(url: string) {
  return {
    /** The open ones by class, most frequent first. Throws when there is no such answer. */
    async groups(token: string): Promise<NonNullable<PulseReport['failed_jobs']>> {
      const signal = AbortSignal.timeout(listMs);
      const answer = await call(url, listFailedJobClasses, { token, signal });
      if (answer.error) throw new Error(answer.error.message);
      return answer.body.items.map(({ example: { id, error, attempts, failed_at }, ...group }) => ({
        ...group,
        example: { id, error, attempts, failed_at },
      }));
    },

    /** Has a job processed again, and tells what came of it. */
    async retry(id: number, token: string): Promise<Outcome> {
      const signal = AbortSignal.timeout(retryMs);
      const answer = await call(url, retryFailedJob, { params: { id }, token, signal }).catch(
        () => undefined,
      );
      return outcomes[answer?.status ?? 0] ?? 'unavailable';
    },
  };
}
export type FailedJobs = ReturnType<typeof createFailedJobs>;
