import type { Database } from './postgres.ts';

/** Rows a statement: none holds its locks for long, or comes near the time limit of statements. */
const slice = 1_000;

/**
 * Deletes all rows of `table` for which `condition` is true, in slices, each on its own. A row that somebody else holds
 * is left for the next time. Throws what `query` throws; what was deleted until then stays so.
 */
export async function deleteOld(
  query: Database['query'],
  operation: string,
  table: string,
  condition: string,
  values: readonly unknown[] = [],
): Promise<void> {
  const text = `DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
                  SELECT ctid FROM ${table} WHERE ${condition} LIMIT ${slice} FOR UPDATE SKIP LOCKED))`;
  let deleted: number | null;
  do deleted = (await query(operation, text, values)).rowCount;
  while (deleted === slice);
}
