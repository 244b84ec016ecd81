import { type Handler, page } from '@content-platform/chassis';
import type { listAudit as contract } from '@content-platform/contract';
import type { AuthContext } from '../context.ts';

export function listAudit({ database }: AuthContext): Handler<typeof contract> {
  return async ({ query: { user_id: userId, event, limit, cursor } }) => {
    const read = (rows: number) => database.audit.list({ userId, event }, cursor, rows);
    const body = await page(limit, read, ({ at, ...record }) => ({ ...record, at: at.toISOString() }));
    return { status: 200, body };
  };
}
