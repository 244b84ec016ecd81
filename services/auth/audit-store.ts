import { deleteWith, rowsOf, statements, type Database } from '@content-platform/chassis';
import type { AuditEvent, listAudit, Reply } from '@content-platform/contract';

/** The author of an action, and the IP address that the request came from. */
export interface Actor {
  /** `user:<id>`, `client:<name>` or `command`; undefined: no authenticated author, for example of a failed login. */
  actor?: string | undefined;
  address?: string | undefined;
}

interface AuditEntry extends Actor {
  event: AuditEvent;
  /** The user whom the entry is about. */
  userId?: number | undefined;
  /** Must not contain secrets, or text that an unauthenticated client sent. */
  details?: Record<string, unknown>;
}

/** An entry as in a reply of the API, but with a Date. */
interface AuditRecord extends Omit<Reply<typeof listAudit>['body']['items'][number], 'at'> {
  at: Date;
}

/** A link of the hash chain over all entries; `hash`: SHA-256 in hex. */
interface Link {
  seq: number;
  hash: string;
}

const rowsPerCheck = 5_000;

/** Returns the fields of an entry about an authenticated user's own account, in which the user is also the actor. */
export const byUser = (userId: number, address: string) => ({ userId, actor: `user:${userId}`, address });

/** Stores the audit log. All functions throw the errors of `query`. */
export function createAuditStore(query: Database['query']) {
  const { rows, affects, run } = statements(query);

  /** Yields all rows of a function of the database, in pages. `keyOf` returns the key that orders the rows. */
  const read = <Row extends object>(operation: string, text: string, keyOf: (row: Row) => number) =>
    rowsOf<Row>((last) => rows<Row>(operation, text, [last ? keyOf(last) + 1 : 1, rowsPerCheck]));

  return {
    /** If the entry describes a change, call it in the transaction of the change. */
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

    /** Records at most one token in an hour for each client and IP address, because clients may ask all the time. */
    addClientToken(name: string, address: string) {
      // `unnamed_actor` is the stored column, which has an index. The view computes `actor` from it.
      const text = `INSERT INTO auth.audit (event, actor, address)
                    SELECT 'client_token', $1::text, $2::inet
                    WHERE NOT EXISTS (SELECT FROM auth.audit WHERE event = 'client_token' AND unnamed_actor = $1
                                        AND address = $2 AND at > now() - interval '1 hour')`;
      return run('note_client_use', text, [`client:${name}`, address]);
    },

    /** Returns whether the client got a token from this network (in CIDR form) in the last 30 days. */
    isNetworkOfClient(name: string, network: string) {
      const text = `SELECT FROM auth.audit WHERE event = 'client_token' AND unnamed_actor = $1 AND address <<= $2
                      AND at > now() - interval '30 days' LIMIT 1`;
      return affects('find_client_use', text, [`client:${name}`, network]);
    },

    /**
     * Appends up to `most` entries to the hash chain and returns them, without personal data: `about` and `sender` are
     * random ids of the user and the sender. Returns none while another process appends.
     */
    link(most: number) {
      const text = `SELECT seq::float8 AS seq, hash, id::float8 AS id, at, event, about, sender, actor, details
                    FROM auth.link_audit($1)`;
      return rows<Link>('link_audit', text, [most]);
    },

    /** Calls `onLink` for each correct link. Returns the number of entries without a link yet, or the first fault. */
    async verify(onLink: (link: Link) => void): Promise<{ queued: number } | { fault: string }> {
      const links = 'SELECT seq::float8 AS seq, hash, fault FROM auth.check_audit_links($1, $2)';
      const found = await read<Link & { fault: string | null }>('check_links', links, ({ seq }) => seq);
      for await (const { fault, ...link } of found) {
        if (fault !== null) return { fault: `link ${link.seq}: ${fault}` };
        onLink(link);
      }
      let queued = 0;
      type Entry = { id: number; queued: boolean; linked: boolean };
      const entries = 'SELECT id::float8 AS id, queued, linked FROM auth.check_audit_entries($1, $2)';
      for await (const entry of await read<Entry>('check_entries', entries, ({ id }) => id)) {
        if (entry.queued) queued += 1;
        else if (!entry.linked) return { fault: `entry ${entry.id}: it has no link` };
      }
      return { queued };
    },

    /** Deletes entries after a year, and those of the event `client_token` after 30 days. */
    deleteExpired: () => deleteWith(query, 'delete_audit', 'auth.delete_expired_audit'),
  };
}
