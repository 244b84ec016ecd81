import { deleteExpired, statements, type Database, type RevocationPage } from '@content-platform/chassis';
import { maxTokenSeconds } from '../access-tokens.ts';

interface Row {
  id: number;
  session: string | null;
  client: string | null;
  issued_until: number;
}

/** Stores the revocations of access tokens, which every service reads. All functions throw the errors of `query`. */
export function createRevocationStore(query: Database['query']) {
  const { rows, first, run } = statements(query);
  return {
    /**
     * Revokes the tokens of these sessions, or all that the client has until now. Call it late in a transaction: its
     * lock makes ids follow the order of commits, so a reader of an id has seen all earlier ones.
     */
    async add({ sessions = [], client }: { sessions?: readonly number[]; client?: string }): Promise<void> {
      if (sessions.length === 0 && client === undefined) return;
      await run('lock_revocations', `SELECT pg_advisory_xact_lock(hashtext('auth.revocation'))`);
      const text = `INSERT INTO auth.revocation (session_id, client)
                    SELECT unnest($1::bigint[]), NULL UNION ALL SELECT NULL, $2::text WHERE $2::text IS NOT NULL`;
      await run('insert_revocations', text, [sessions, client ?? null]);
    },

    /** Lists the revocations after `after` whose tokens may be valid, oldest first; `last`: newest id of any age. */
    async listAfter(after: number): Promise<RevocationPage> {
      const text = `SELECT id::float8 AS id, session_id AS session, client,
                      ceil(extract(epoch FROM at))::float8 AS issued_until
                    FROM auth.revocation
                    WHERE id > $1 AND at > now() - make_interval(secs => $2)
                      OR id = (SELECT max(id) FROM auth.revocation)
                    ORDER BY revocation.id`;
      const found = await rows<Row>('list_revocations', text, [after, maxTokenSeconds]);
      const revocations = found
        .filter(({ id }) => id > after)
        .map(({ id, session, client, issued_until }) =>
          client === null ? { id, session: session! } : { id, client, issued_until },
        );
      return { last: found.at(-1)?.id ?? 0, revocations };
    },

    /** Returns up to 1,000 sessions that ended after the id `after` in the last 30 days, oldest first. */
    async listEndedSessions(after: number) {
      const text = `SELECT id::float8 AS id, session_id::float8 AS session_id FROM auth.revocation
                    WHERE id > $1 AND session_id IS NOT NULL ORDER BY revocation.id LIMIT 1000`;
      const sessions = await rows<{ id: number; session_id: number }>('list_ended_sessions', text, [after]);
      const newest = 'SELECT coalesce(max(id), 0)::float8 AS last FROM auth.revocation';
      const { last } = (await first<{ last: number }>('find_last_revocation', newest))!;
      return { sessions, last };
    },

    /** Deletes revocations older than 30 days, except the newest one, with which readers compare their position. */
    async deleteExpired(): Promise<void> {
      const old = `at < now() - interval '30 days' AND id < (SELECT max(id) FROM auth.revocation)`;
      await deleteExpired(query, 'delete_revocations', 'auth.revocation', old);
    },
  };
}
