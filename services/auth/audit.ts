import { deleteOld, type Database } from '@content-platform/chassis';
import type { AuditEvent } from '@content-platform/contract';

export interface AuditEntry {
  event: AuditEvent;
  /** whom it is about */
  userId?: number | undefined;
  /** who did it: `user:<id>`, `client:<name>`, `command` */
  actor?: string | undefined;
  address?: string | undefined;
  /** never a secret, and nothing that a stranger typed */
  details?: Record<string, unknown>;
}

/** For so long entries are kept. Clients ask for tokens all day: those entries would soon be most of all. */
const kept = { clientToken: '30 days', other: '1 year' };

/** What was written, as it comes back. */
export interface AuditRecord {
  id: number;
  at: Date;
  event: AuditEvent;
  userId: number | null;
  actor: string | null;
  address: string | null;
  details: Record<string, unknown>;
}

/** Writes what happened; in the transaction in which it happens, where there is one. */
export async function audit(
  query: Database['query'],
  { event, userId, actor, address, details = {} }: AuditEntry,
): Promise<void> {
  const text = `INSERT INTO auth.audit (event, user_id, actor, address, details) VALUES ($1, $2, $3, $4, $5)`;
  await query('insert_audit', text, [event, userId ?? null, actor ?? null, address ?? null, details]);
}

/** The records of a user, of an event, or all, newest first, from below the id `before` on. Throws what `query` throws. */
export async function auditRecords(
  query: Database['query'],
  { userId, event }: { userId?: number | undefined; event?: AuditEvent | undefined },
  before: number | undefined,
  limit: number,
): Promise<AuditRecord[]> {
  const text = `SELECT id, at, event, user_id AS "userId", actor, host(address) AS address, details FROM auth.audit
                WHERE ($1::bigint IS NULL OR user_id = $1) AND ($2::text IS NULL OR event = $2)
                  AND ($3::bigint IS NULL OR id < $3)
                ORDER BY id DESC LIMIT $4`;
  type Row = Omit<AuditRecord, 'id' | 'userId'> & { id: string; userId: string | null };
  const values = [userId ?? null, event ?? null, before ?? null, limit];
  const { rows } = await query<Row>('list_audit', text, values);
  return rows.map((row) => ({
    ...row,
    id: Number(row.id),
    userId: row.userId === null ? null : Number(row.userId),
  }));
}

/** Deletes the old ones. Throws what `query` throws. */
export async function forgetAudit(query: Database['query']): Promise<void> {
  const tokens = `event = 'client_token' AND at < now() - interval '${kept.clientToken}'`;
  await deleteOld(query, 'delete_client_token_audit', 'auth.audit', tokens);
  await deleteOld(query, 'delete_audit', 'auth.audit', `at < now() - interval '${kept.other}'`);
}
