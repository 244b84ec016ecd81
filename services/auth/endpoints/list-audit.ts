import { type Handler, page } from '@content-platform/chassis';
import type { listAudit as contract } from '@content-platform/contract';
import type { AuditRecord } from '../audit-store.ts';
import type { AuthDatabase } from '../stores.ts';

const toReply = ({ at, userId: user_id, ...record }: AuditRecord) => ({
  ...record,
  at: at.toISOString(),
  user_id,
});

export function listAudit({ audit }: Pick<AuthDatabase, 'audit'>): Handler<typeof contract> {
  return async ({ query: { user_id: userId, event, limit, cursor } }) => {
    const read = (rows: number) => audit.list({ userId, event }, cursor, rows);
    return { status: 200, body: await page(limit, read, toReply) };
  };
}
