import type { Database, Handler } from '@content-platform/chassis';
import type { listAudit as contract } from '@content-platform/contract';
import { auditRecords } from '../audit.ts';

export function listAudit({ query }: { query: Database['query'] }): Handler<typeof contract> {
  return async ({ query: { user_id: userId, event, limit, cursor } }) => {
    const found = await auditRecords(query, { userId, event }, cursor, limit + 1);
    const items = found.slice(0, limit);
    return {
      status: 200,
      body: {
        items: items.map(({ id, at, event: what, userId: user_id, actor, address, details }) => ({
          id,
          at: at.toISOString(),
          event: what,
          user_id,
          actor,
          address,
          details,
        })),
        next_cursor: found.length > limit ? String(items.at(-1)!.id) : null,
      },
    };
  };
}
