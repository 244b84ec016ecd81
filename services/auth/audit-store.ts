import { deleteWith, type Database } from '@content-platform/chassis';
import type { AuditEvent } from '@content-platform/contract';
import { statements } from './statements.ts';

/** The sender of a request: identity and IP address. */
export interface Actor {
  /** `user:<id>`, `client:<name>` or `command` */
  actor?: string | undefined;
  address?: string | undefined;
}

export interface AuditEntry extends Actor {
  event: AuditEvent;
  /** The user whom the entry is about. */
  userId?: number | undefined;
  /** Must not contain secrets, or text that an unauthenticated client sent. */
  details?: Record<string, unknown>;
}

export interface AuditRecord {
  id: number;
  at: Date;
  event: AuditEvent;
  user_id: number | null;
  actor: string | null;
  address: string | null;
  details: Record<string, unknown>;
}

/** Makes the actor of an entry about users' changes to their own account. */
export function byUser(userId: number, address: string) {
  return { userId, actor: `user:${userId}`, address };
}

/** Stores the audit log. All functions throw the errors of `query`. */
export function createAuditStore(query: Database['query']) {
  const { rows, affects, run } = statements(query);
  return {
    /** Writes an entry. If the entry describes a change, call it in the transaction of the change. */
    add({ event, userId, actor, address, details = {} }: AuditEntry) {
      const text = `INSERT INTO auth.audit (event, user_id, actor, address, details) VALUES ($1, $2, $3, $4, $5)`;
      return run('insert_audit', text, [event, userId ?? null, actor ?? null, address ?? null, details]);
    },

    /** Lists the entries of a user, of an event, or all entries: newest first, with ids below `before`. */
    list(
      { userId, event }: { userId?: number | undefined; event?: AuditEvent | undefined },
      before: number | undefined,
      limit: number,
    ) {
      const text = `SELECT id::float8 AS id, at, event, user_id::float8 AS user_id, actor, host(address) AS address, details
                    FROM auth.audit
                    WHERE ($1::bigint IS NULL OR user_id = $1) AND ($2::text IS NULL OR event = $2)
                      AND ($3::bigint IS NULL OR id < $3)
                    ORDER BY audit.id DESC LIMIT $4`;
      return rows<AuditRecord>('list_audit', text, [userId ?? null, event ?? null, before ?? null, limit]);
    },

    /**
     * Records that a machine client got a token: once an hour for each IP address, because clients may ask all the
     * time.
     */
    addClientToken(name: string, address: string) {
      const text = `INSERT INTO auth.audit (event, actor, address)
                    SELECT 'client_token', $1::text, $2::inet
                    WHERE NOT EXISTS (SELECT FROM auth.audit WHERE event = 'client_token' AND actor = $1
                                        AND address = $2 AND at > now() - interval '1 hour')`;
      return run('note_client_use', text, [`client:${name}`, address]);
    },

    /** Returns whether the client got a token from this network (in CIDR form) in the last 30 days. */
    isNetworkOfClient(name: string, network: string) {
      const text = `SELECT FROM auth.audit WHERE event = 'client_token' AND actor = $1 AND address <<= $2
                      AND at > now() - interval '30 days' LIMIT 1`;
      return affects('find_client_use', text, [`client:${name}`, network]);
    },

    /**
     * Deletes entries that are a year old; of `client_token` 30 days, because clients request tokens all day and their
     * entries would soon outnumber all others.
     */
    deleteExpired: () => deleteWith(query, 'delete_audit', 'auth.delete_expired_audit'),
  };
}
