import type { Database } from '@content-platform/chassis';
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

/** Writes what happened; in the transaction in which it happens, where there is one. */
export async function audit(
  query: Database['query'],
  { event, userId, actor, address, details = {} }: AuditEntry,
): Promise<void> {
  const text = `INSERT INTO auth.audit (event, user_id, actor, address, details) VALUES ($1, $2, $3, $4, $5)`;
  await query('insert_audit', text, [event, userId ?? null, actor ?? null, address ?? null, details]);
}
