import pg from 'pg';
import { currentContext } from './context.ts';
import type { Logger } from './logger.ts';
import type { Metrics } from './metrics.ts';
import { migrate } from './migrations.ts';
import { withoutValues } from './sql-text.ts';
import { activeSpan } from './tracing.ts';

export interface SlowRequest {
  method: string;
  /** Template from the contract. */
  route: string;
  status: number;
  ms: number;
  requestId: string;
  traceId?: string | undefined;
  userId?: string | undefined;
  cache?: string | undefined;
  databaseCalls?: number | undefined;
  databaseMs?: number | undefined;
}

/** Records what was slow in the logs database, never in the way of a request: a full queue drops, and counts it. */
export interface SlowLog {
  request(slow: SlowRequest): void;
  /** `statement`: what values are written in it are not recorded. */
  query(slow: { statement: string; ms: number }): void;
  close(): Promise<void>;
}

type Row = { table: 'slow_request' | 'slow_query'; values: Record<string, unknown> };

const maxQueue = 1_000;
const maxBatch = 100;
const flushEveryMs = 1_000;
const keepDays = 30;

function insert(table: Row['table'], rows: Record<string, unknown>[]) {
  const columns = Object.keys(rows[0]!);
  const tuples = rows.map(
    (_, row) => `(${columns.map((_, column) => `$${row * columns.length + column + 1}`).join(', ')})`,
  );
  const text = `INSERT INTO logs.${table} (${columns.join(', ')}) VALUES ${tuples.join(', ')}`;
  return { text, values: rows.flatMap((row) => columns.map((column) => row[column] ?? null)) };
}

/** `url` undefined: nothing is recorded. The tables are made when the logs database is first reached. */
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
  let flushing: Promise<void> | undefined;
  let ready = false;
  let cleanedAt = -Infinity;
  const closing = new AbortController();

  function add(row: Row): void {
    if (queue.length >= maxQueue) return metrics.slowLogDropped.inc();
    queue.push(row);
  }

  async function clean(): Promise<void> {
    if (performance.now() - cleanedAt < 3_600_000) return;
    for (const table of ['slow_request', 'slow_query']) {
      await pool.query(`DELETE FROM logs.${table} WHERE at < now() - make_interval(days => $1)`, [keepDays]);
    }
    cleanedAt = performance.now();
  }

  async function flush(): Promise<void> {
    if (queue.length === 0) return;
    const batch = queue.splice(0, maxBatch);
    try {
      if (!ready) {
        const folder = new URL('migrations/', import.meta.url);
        await migrate({ url: url!, schema: 'logs', folder, logger, signal: closing.signal });
        ready = true;
      }
      for (const [table, rows] of Map.groupBy(batch, (row) => row.table)) {
        const { text, values } = insert(
          table,
          rows.map((row) => row.values),
        );
        await pool.query(text, values);
      }
      await clean();
    } catch (error) {
      metrics.slowLogDropped.inc(batch.length);
      logger.warn({ error, rows: batch.length }, 'slow log rows were dropped');
    }
  }

  const timer = setInterval(() => {
    flushing ??= flush().finally(() => (flushing = undefined));
  }, flushEveryMs);
  timer.unref();

  return {
    request({ ms, requestId, traceId, userId, databaseCalls, databaseMs, ...rest }) {
      add({
        table: 'slow_request',
        values: {
          at: new Date(),
          service,
          method: rest.method,
          route: rest.route,
          status: rest.status,
          duration_ms: ms,
          request_id: requestId,
          trace_id: traceId,
          user_id: userId,
          cache: rest.cache,
          database_calls: databaseCalls,
          database_ms: databaseMs,
        },
      });
    },
    query({ statement, ms }) {
      const context = currentContext();
      add({
        table: 'slow_query',
        values: {
          at: new Date(),
          service,
          statement: withoutValues(statement),
          duration_ms: ms,
          route: context?.route,
          request_id: context?.requestId,
          trace_id: activeSpan()?.traceId,
        },
      });
    },
    async close() {
      clearInterval(timer);
      closing.abort();
      await flushing;
      // A batch that cannot be written is dropped, so this ends.
      while (ready && queue.length > 0) await flush();
      await pool.end();
    },
  };
}
