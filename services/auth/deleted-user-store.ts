import { statements, type Database } from '@content-platform/chassis';

type Entry = { position: number; id: number; deleted_at: Date };

/** Stores the feed of deleted users, which a trigger of auth.user fills. All functions throw the errors of `query`. */
export function createDeletedUserStore(query: Database['query']) {
  const { rows, first, affects, run } = statements(query);
  return {
    /** Records that `reader` has erased users up to `after`. Lists up to 1,000 later users and the newest position. */
    async confirmAndList(after: number, reader: string) {
      // Readers poll. NOT EXISTS saves the write while the position stays the same.
      const progress = `INSERT INTO auth.deleted_user_reader AS known (reader, position)
                        SELECT $1, $2::bigint WHERE NOT EXISTS (
                          SELECT FROM auth.deleted_user_reader WHERE reader = $1 AND position >= $2)
                        ON CONFLICT (reader) DO UPDATE SET position = greatest(known.position, excluded.position)`;
      await run('record_erasure', progress, [reader, after]);
      const text = `SELECT position::float8 AS position, id::float8 AS id, deleted_at FROM auth.deleted_user
                    WHERE position > $1 ORDER BY deleted_user.position LIMIT 1000`;
      const found = await rows<Entry>('list_deleted_users', text, [after]);
      const users = found.map((user) => ({ ...user, deleted_at: user.deleted_at.toISOString() }));
      const newest = 'SELECT coalesce(max(position), 0)::float8 AS last FROM auth.deleted_user';
      return { users, last: (await first<{ last: number }>('find_last_deleted_user', newest))!.last };
    },

    /** Returns for each reader the age in seconds of the oldest deletion that it has not carried out, or 0. */
    lagOf(readers: readonly string[]) {
      const text = `SELECT name AS reader, greatest(0, coalesce(extract(epoch FROM now() - min(deleted_at)), 0))::float8 AS seconds
                    FROM unnest($1::text[]) AS name
                    LEFT JOIN auth.deleted_user_reader ON reader = name
                    LEFT JOIN auth.deleted_user ON deleted_user.position > coalesce(deleted_user_reader.position, 0)
                    GROUP BY name`;
      return rows<{ reader: string; seconds: number }>('measure_erasure', text, [readers]);
    },

    /** Deletes what the audit log and requests for a new password know of the users who no longer exist. */
    async erase(ids: readonly number[]): Promise<void> {
      const text = `DELETE FROM auth.password_reset WHERE user_id = ANY ($1)
                    AND NOT EXISTS (SELECT FROM auth.user WHERE id = password_reset.user_id)`;
      await run('erase_password_resets', text, [ids]);
      await run('erase_audit_persons', 'SELECT auth.erase_audit_persons($1)', [ids]);
    },

    has: (id: number) => affects('find_deleted_user', 'SELECT FROM auth.deleted_user WHERE id = $1', [id]),

    /** Adds a user who does not exist to the feed. */
    add: (id: number) => run('add_deleted_user', 'SELECT auth.add_deleted_user($1)', [id]),

    /** Makes new users get ids above `upTo`. */
    reserveIds: (upTo: number) => run('reserve_user_ids', 'SELECT auth.reserve_user_ids($1)', [upTo]),

    // Without row locks, which need the right to update: deleted users are never changed.
    deleteExpired() {
      const text = `DELETE FROM auth.deleted_user WHERE deleted_at < now() - interval '400 days'`;
      return run('delete_deleted_users', text);
    },
  };
}
