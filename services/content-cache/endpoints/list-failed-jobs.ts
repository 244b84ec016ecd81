import { HttpError, type Handler } from '@content-platform/chassis';
import { idSegment, type listFailedJobs as contract } from '@content-platform/contract';
import type { FailedJobStore } from '../failed-job-store.ts';

/** A cursor is the id of the last job on the page before. */
function readCursor(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined;
  const { data } = idSegment.safeParse(cursor);
  if (data !== undefined) return data;
  throw new HttpError(422, 'validation_failed', 'The request is not valid.', [
    { path: 'query.cursor', message: 'Must be next_cursor of the page before.' },
  ]);
}

export function listFailedJobs({ jobs }: { jobs: FailedJobStore }): Handler<typeof contract> {
  return async ({ query: { limit, cursor, ...filter } }) => {
    const page = await jobs.list(filter, readCursor(cursor), limit);
    const next = page.next === null ? null : String(page.next);
    return { status: 200, body: { items: page.jobs, next_cursor: next } };
  };
}
