import { listFailedJobClasses, retryFailedJob, type PulseReport } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';

const retryTimeoutMs = 9_000;

export type Outcome = 'done' | 'failed' | 'gone' | 'unavailable';
const outcomes: Record<number, Outcome> = { 200: 'done', 409: 'failed', 404: 'gone' };

/** Reads and retries the failed jobs of the content-cache at `url` with a viewer's token. */
export function createFailedJobs(url: string) {
  return {
    /** Returns open jobs by class, most frequent first, without the event. Throws if content-cache takes over 2 s. */
    async groups(token: string): Promise<NonNullable<PulseReport['failed_jobs']>> {
      const answer = await call(url, listFailedJobClasses, { token, signal: AbortSignal.timeout(2_000) });
      if (answer.error) throw new Error(answer.error.message);
      return answer.body.items.map(({ example: { id, error, attempts, failed_at }, ...group }) => ({
        ...group,
        example: { id, error, attempts, failed_at },
      }));
    },

    /** Retries a job. Never throws; 'unavailable' after 9 s, or for any other status. */
    async retry(id: number, token: string): Promise<Outcome> {
      const signal = AbortSignal.timeout(retryTimeoutMs);
      const answer = await call(url, retryFailedJob, { params: { id }, token, signal }).catch(
        () => undefined,
      );
      return outcomes[answer?.status ?? 0] ?? 'unavailable';
    },
  };
}
