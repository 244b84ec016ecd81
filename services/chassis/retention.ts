import type { Logger } from './logger.ts';
import type { Database } from './postgres.ts';
import { repeat } from './repeat.ts';

type Query = Database['query'];

/** The deletions of a process, each under the name of its rows. */
export type RetentionSteps = (query: Query) => Record<string, () => Promise<unknown>>;

/** Repeats `text`, whose LIMIT must be `rowsPerStatement`, until it changes fewer rows. Returns the sum of its rows. */
export async function runInBatches(
  query: Query,
  operation: string,
  text: string,
  values: readonly unknown[],
  rowsPerStatement = 1_000,
): Promise<number> {
  for (let sum = 0; ;) {
    const changed = (await query(operation, text, values)).rowCount!;
    sum += changed;
    if (changed < rowsPerStatement) return sum;
  }
}

/** Deletes the rows that meet `condition`, in batches. Rows that another transaction has locked stay. */
export async function deleteExpired(
  query: Query,
  operation: string,
  table: string,
  condition: string,
  values: readonly unknown[] = [],
  rowsPerStatement = 1_000,
): Promise<void> {
  const text = `DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
                  SELECT ctid FROM ${table} WHERE ${condition} LIMIT ${rowsPerStatement} FOR UPDATE SKIP LOCKED))`;
  await runInBatches(query, operation, text, values, rowsPerStatement);
}

/** Repeats a database function, which deletes at most $1 rows and returns their number, until it deletes fewer. */
export async function deleteWith(query: Query, operation: string, functionName: string): Promise<void> {
  const rowsPerStatement = 1_000;
  const text = `SELECT ${functionName}($1)::float8 AS deleted`;
  let deleted: number;
  do deleted = (await query<{ deleted: number }>(operation, text, [rowsPerStatement])).rows[0]!.deleted;
  while (deleted >= rowsPerStatement);
}

const failure = 'old rows or files were not deleted; they stay until a retry succeeds';

/** Runs all deletions once, until `signal` is aborted. A failed step is logged and does not stop the other steps. */
export async function runRetention(
  query: Query,
  stepsOf: RetentionSteps,
  logger: Logger,
  signal: AbortSignal,
): Promise<void> {
  const queryUntilAborted: Query = async (...statement) => {
    signal.throwIfAborted();
    return query(...statement);
  };
  for (const [rows, deleteRows] of Object.entries(stepsOf(queryUntilAborted))) {
    await deleteRows().catch((error: unknown) => {
      if (signal.aborted) return;
      logger.warn({ error, rows }, failure);
    });
  }
}

/** Returns a random number of ms until the first run, so that replicas do not run at the same time. */
export const firstRetentionMs = (): number => 30_000 + Math.random() * 30_000;

/** Runs the deletions after 30 to 60 s and then every `everyMs`, until the returned function is called. */
export function startRetention(
  query: Query,
  stepsOf: RetentionSteps,
  logger: Logger,
  { everyMs = 3_600_000, firstMs = firstRetentionMs() } = {},
): () => Promise<void> {
  const runSteps = (signal: AbortSignal) => runRetention(query, stepsOf, logger, signal);
  return repeat(runSteps, { everyMs, firstMs, logger, failure });
}
