import { deleteOld, type Database, type RevocationPage } from '@content-platform/chassis';
import { accessTokenLifetime } from '../access-token-lifetime.ts';

interface Row {
  id: string;
  session: string | null;
  client: string | null;
  issued_until: string;
}

/**
 * Has every process refuse the tokens of these sessions, or of a client up to now. To be called late in a transaction:
 * its lock makes ids come in the order of commits, so that who has seen one has seen all before it.
 */
export async function revoke(
  query: Database['query'],
  { sessions = [], client }: { sessions?: readonly number[]; client?: string },
): Promise<void> {
  if (sessions.length === 0 && client === undefined) return;
  await query('lock_revocations', `SELECT pg_advisory_xact_lock(hashtext('auth.revocation'))`);
  const text = `INSERT INTO auth.revocation (session_id, client)
                SELECT unnest($1::bigint[]), NULL UNION ALL SELECT NULL, $2::text WHERE $2::text IS NOT NULL`;
  await query('insert_revocations', text, [sessions, client ?? null]);
}

/** The revocations after the id `after` that still matter, oldest first. */
export async function revocationsAfter(query: Database['query'], after: number): Promise<RevocationPage> {
  const text = `SELECT id, session_id AS session, client, ceil(extract(epoch FROM at)) AS issued_until
                FROM auth.revocation
                WHERE id > $1 AND at > now() - make_interval(secs => $2) OR id = (SELECT max(id) FROM auth.revocation)
                ORDER BY id`;
  const { rows } = await query<Row>('list_revocations', text, [after, accessTokenLifetime + 60]);
  const last = Number(rows.at(-1)?.id ?? 0);
  const news = rows.filter(({ id }) => Number(id) > after);
  return {
    last,
    revocations: news.map(({ id, session, client, issued_until }) =>
      client === null
        ? { id: Number(id), session: session! }
        : { id: Number(id), client, issued_until: Number(issued_until) },
    ),
  };
}

/** Deletes those that no living token needs. The newest stays: its id says how far others have got. */
export async function forgetRevocations(query: Database['query']): Promise<void> {
  const old = 'at < now() - make_interval(secs => $1) AND id < (SELECT max(id) FROM auth.revocation)';
  await deleteOld(query, 'delete_revocations', 'auth.revocation', old, [accessTokenLifetime + 60]);
}
