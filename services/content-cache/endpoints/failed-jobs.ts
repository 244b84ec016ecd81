import { setTimeout as sleep } from 'node:timers/promises';
import {
  type AddToAudit,
  type Caller,
  type Handler,
  HttpError,
  type Logger,
} from '@content-platform/chassis';
import type * as contract from '@content-platform/contract';
import { CacheError, type CacheClearer } from '../cache/index.ts';
import { parseEvent, type Unprocessable } from '../events/parse-event.ts';
import type { FailedJobStore } from '../failed-job-store.ts';
import type { Invalidator } from '../invalidator.ts';
import { cacheUnavailable, callerName } from './clears.ts';

export interface FailedJobDeps {
  jobs: FailedJobStore;
  invalidator: Invalidator;
  cache: CacheClearer;
  addToAudit: AddToAudit;
  logger: Logger;
}

type DeletionDeps = Pick<FailedJobDeps, 'jobs' | 'addToAudit' | 'logger'>;

const jobNotFound = (id: number) => new HttpError('not_found', `Failed job ${id} was not found.`);

export function listFailedJobs({ jobs }: FailedJobDeps): Handler<typeof contract.listFailedJobs> {
  return async ({ query: { limit, cursor, ...filter } }) => ({
    status: 200,
    body: await jobs.list(filter, cursor, limit),
  });
}

export function listFailedJobClasses({ jobs }: FailedJobDeps): Handler<typeof contract.listFailedJobClasses> {
  return async ({ query }) => ({ status: 200, body: { items: await jobs.groups(query) } });
}

export function readFailedJob({ jobs }: FailedJobDeps): Handler<typeof contract.readFailedJob> {
  return async ({ params: { id } }) => {
    const job = await jobs.find(id);
    if (!job) throw jobNotFound(id);
    return { status: 200, body: job };
  };
}

/** Records a deletion in the audit log and the log. */
async function recordDeletion(
  { addToAudit, logger }: DeletionDeps,
  { caller, address }: { caller: Caller; address: string },
  details: Record<string, unknown>,
  message: string,
): Promise<void> {
  const audited = await addToAudit({ event: 'failed_jobs_deleted', caller, address, details });
  logger.info({ requested_by: callerName(caller), ...details, audited }, message);
}

export function deleteFailedJob(deps: DeletionDeps): Handler<typeof contract.deleteFailedJob> {
  return async ({ params: { id }, ...call }) => {
    if (!(await deps.jobs.remove(id))) throw jobNotFound(id);
    await recordDeletion(deps, call, { job_id: id }, 'a failed job was deleted');
    return { status: 204 };
  };
}

/** Time after which no more statements start: each may take 5 s, and the contract allows 10 s for the call. */
const maxDeletionMs = 4_000;

export function deleteFailedJobs(deps: DeletionDeps): Handler<typeof contract.deleteFailedJobs> {
  const { jobs } = deps;
  return async ({ body: { dry_run, ...filter }, ...call }) => {
    const start = performance.now();
    // Only counted jobs are deleted: jobs that arrive later stay.
    const { matched, newest } = await jobs.countMatching(filter);
    if (dry_run) return { status: 200, body: { matched, deleted: 0 } };
    let deleted = 0;
    const isOver = () => call.signal().aborted || performance.now() - start > maxDeletionMs;
    try {
      while (deleted < matched && !isOver()) {
        const count = await jobs.removeMatching(filter, newest);
        if (count === 0) break;
        deleted += count;
      }
    } finally {
      if (deleted > 0)
        await recordDeletion(deps, call, { filter, matched, deleted }, 'failed jobs were deleted');
    }
    return { status: 200, body: { matched, deleted } };
  };
}

/**
 * Retries a job: a newer version of the service may accept an event that an older version refused. Returns the job's new
 * state, and its new failure if any; undefined if there is no such job. Throws 503 if the cache refuses: then the job is
 * unchanged.
 */
async function retry({ jobs, invalidator, cache }: FailedJobDeps, id: number, caller: Caller) {
  const stored = await jobs.load(id);
  if (!stored) return undefined;
  const requester = { source: 'retry', requestedBy: callerName(caller), since: Date.now() } as const;
  let failure: Unprocessable | undefined;
  try {
    if (stored.class === 'events_lost') {
      await invalidator.clearAll(cache, requester);
    } else {
      const parsed = parseEvent(stored.value);
      if ('target' in parsed) await invalidator.clear(cache, parsed.target, requester);
      else failure = parsed;
    }
  } catch (error) {
    if (!(error instanceof CacheError)) throw error;
    throw cacheUnavailable('The cache cannot be cleared now: the job stays open.', error);
  }
  const job = await jobs.recordRetry(id, failure);
  return job && { job, failure };
}

export function retryFailedJob(deps: FailedJobDeps): Handler<typeof contract.retryFailedJob> {
  return async ({ params: { id }, caller }) => {
    const result = await retry(deps, id, caller);
    if (!result) throw jobNotFound(id);
    const { job, failure } = result;
    if (failure) throw new HttpError('retry_failed', `The retry failed: ${failure.class}: ${job.error}`);
    return { status: 200, body: job };
  };
}

/** Below the 10 s that the contract allows and that a stopping process waits. */
const maxRetryMs = 8_000;

export function retryFailedJobs(deps: FailedJobDeps): Handler<typeof contract.retryFailedJobs> {
  return async ({ body: { dry_run, per_second, ...filter }, caller, signal }) => {
    const { matched } = await deps.jobs.countMatching({ ...filter, state: 'open' });
    const result = { matched, retried: 0, failed: 0 };
    if (dry_run) return { status: 200, body: result };
    const start = performance.now();
    const ids = await deps.jobs.listOpen(filter, Math.ceil((per_second * maxRetryMs) / 1_000));
    for (const [index, id] of ids.entries()) {
      const wait = start + (index * 1_000) / per_second - performance.now();
      if (wait > 0) await sleep(wait, undefined, { signal: signal() }).catch(() => undefined);
      if (signal().aborted || performance.now() - start > maxRetryMs) break;
      const tried = await retry(deps, id, caller);
      // undefined: the job was deleted meanwhile
      if (tried) result[tried.failure ? 'failed' : 'retried'] += 1;
    }
    return { status: 200, body: result };
  };
}
