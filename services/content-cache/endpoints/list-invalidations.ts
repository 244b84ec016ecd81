import type { Handler } from '@content-platform/chassis';
import type { listInvalidations as contract } from '@content-platform/contract';
import type { InvalidationLog } from '../invalidation-log.ts';

export function listInvalidations({ log }: { log: InvalidationLog }): Handler<typeof contract> {
  return async ({ query: { limit, cursor, ...filter } }) => ({
    status: 200,
    body: await log.list(filter, cursor, limit),
  });
}
