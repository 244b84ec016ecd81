import pg from 'pg';
import { currentContext, activeSpan } from './context.ts';
import type { Logger } from './logger.ts';
import type { Metrics } from './metrics.ts';
import { migrate } from './migrations.ts';
import type { Database } from './postgres.ts';
import { repeat } from './repeat.ts';
import { deleteWith, firstRetentionMs } from './retention.ts';

export interface SlowRequest {
  method: string;
  route: string;
  status: number;
  duration_ms: number;
  request_id: string;
  trace_id?: string | undefined;
  user_id?: string | undefined;
  cache?: string | undefined;
  database_calls?: number | undefined;
  database_ms?: number | undefined;
}

/** Records slow requests and queries in the logs database, in the background: a full queue drops rows and counts them. */
export interface SlowLog {
  request(slow: SlowRequest): void;
  /** `statement` has placeholders in place of values, as `Database` requires. */
  query(slow: { statement: string; ms: number }): void;
  close(): Promise<void>;
}

type Row = { table: 'slow_request' | 'slow_query'; values: object };

const maxQueue = 1_000;
const maxBatch = 100;

function insert(table: Row['table'], rows: readonly Row[]) {
  const columns = Object.keys(Object.assign({}, ...rows.map(({ values }) => values))).join(', ');
  const text = `INSERT INTO logs.${table} (${columns})
                SELECT ${columns} FROM json_populate_recordset(NULL::logs.${table}, $1)`;
  return { text, values: [JSON.stringify(rows.map(({ values }) => values))] };
}

/** Creates or updates the schema of the logs database. */
export async function migrateLogs(url: string, logger: Logger, signal?: AbortSignal): Promise<void> {
  const folder = new URL('migrations/', import.meta.url);
  await migrate({ url, schema: 'logs', folder, logger, ...(signal && { signal }) });
}

/** Creates the slow log. Without `url` it records nothing. The first connection creates the tables. */
export function createSlowLog(url: string | undefined, metrics: Metrics, logger: Logger): SlowLog {
  if (!url) return { request: () => undefined, query: () => undefined, close: () => Promise.resolve() };
  const { service } = metrics;
  const pool = new pg.Pool({
    connectionString: url,
    application_name: service,
    max: 1,
    connectionTimeoutMillis: 2_000,
    query_timeout: 5_000,
    statement_timeout: 5_000,
  });
  pool.on('error', () => undefined);
  const queue: Row[] = [];
  let ready = false;
  let cleanAt = performance.now() + firstRetentionMs();

  function add(table: Row['table'], values: Row['values']): void {
    if (queue.length >= maxQueue) metrics.slowLogDropped.inc();
    else queue.push({ table, values: { at: new Date(), service, ...values } });
  }

  async function prepare(signal?: AbortSignal): Promise<void> {
    if (!ready) await migrateLogs(url!, logger, signal);
    ready = true;
  }

  /** Deletes old rows once an hour, between two batches, because the pool has one connection. */
  async function clean(signal: AbortSignal): Promise<void> {
    if (performance.now() < cleanAt) return;
    cleanAt = performance.now() + 3_600_000;
    await prepare(signal);
    const query: Database['query'] = async (_operation, text, values = []) => {
      signal.throwIfAborted();
      return pool.query(text, values as unknown[]);
    };
    await deleteWith(query, 'delete_slow_log', 'logs.delete_expired');
  }

  async function flush(signal?: AbortSignal): Promise<void> {
    if (queue.length === 0) return;
    const batch = queue.splice(0, maxBatch);
    try {
      await prepare(signal);
      for (const [table, rows] of Map.groupBy(batch, (row) => row.table))
        await pool.query(insert(table, rows));
    } catch (error) {
      ready = false;
      metrics.slowLogDropped.inc(batch.length);
      logger.warn({ error, dropped: batch.length }, 'slow log rows were dropped');
    }
  }

  const flushAndClean = (signal: AbortSignal) => flush(signal).then(() => clean(signal));
  const failure = 'old slow log rows were not deleted; retrying in an hour';
  const everyMs = () => (ready && queue.length >= maxBatch ? 0 : 1_000);
  const stop = repeat(flushAndClean, { everyMs, logger, failure });

  return {
    request: (slow) => add('slow_request', slow),
    query({ statement, ms }) {
      const context = currentContext();
      add('slow_query', {
        statement,
        duration_ms: ms,
        route: context?.route,
        request_id: context?.requestId,
        trace_id: activeSpan()?.traceId,
      });
    },
    async close() {
      await stop();
      // Ends with the first batch that cannot be written.
      while (ready && queue.length > 0) await flush();
      await pool.end();
    },
  };
}
