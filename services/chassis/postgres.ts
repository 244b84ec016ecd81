import pg from 'pg';
import { isAway } from './away.ts';
import { currentContext, outsideContext } from './context.ts';
import { unavailable } from './http-error.ts';
import type { Logger } from './logger.ts';
import { observe, type Metrics } from './metrics.ts';
import type { SlowLog } from './slow-log.ts';
import { activeSpan, traced } from './tracing.ts';

/** Runs statements. `operation` names the call for metrics and logs; `text` has placeholders, never values. */
export interface Database {
  /** Throws 503 when the database is away, restarts or is too slow; otherwise what PostgreSQL says. */
  query<Row extends pg.QueryResultRow>(
    operation: string,
    text: string,
    values?: readonly unknown[],
  ): Promise<pg.QueryResult<Row>>;
  /** All or nothing; the same errors. */
  transaction<T>(work: (query: Database['query']) => Promise<T>): Promise<T>;
  /** Resolves when the database answers. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

export interface DatabaseOptions {
  url: string;
  logger: Logger;
  metrics: Metrics;
  slowLog: SlowLog;
  slowQueryMs: number;
  maxConnections?: number;
  /** PostgreSQL ends a statement after so many ms. */
  statementTimeoutMs?: number;
}

function translate(error: unknown): unknown {
  return isAway(error) ? unavailable('The database does not answer at the moment.', error) : error;
}

/** A pool of connections with time limits and measurements. */
export function createDatabase(options: DatabaseOptions): Database {
  const {
    url,
    logger,
    metrics,
    slowLog,
    slowQueryMs,
    maxConnections = 10,
    statementTimeoutMs = 5_000,
  } = options;
  const pool = new pg.Pool({
    connectionString: url,
    application_name: metrics.service,
    max: maxConnections,
    connectionTimeoutMillis: 2_000,
    statement_timeout: statementTimeoutMs,
    // When even the server's own timeout does not reach us.
    query_timeout: statementTimeoutMs + 1_000,
    keepAlive: true,
  });
  // Without a listener an idle connection that breaks would end the process.
  pool.on('error', (error) =>
    outsideContext(() => logger.warn({ error }, 'an idle database connection broke')),
  );

  async function measured<T>(operation: string, text: string, work: () => Promise<T>): Promise<T> {
    const start = performance.now();
    const attributes = {
      'db.system.name': 'postgresql',
      'db.query.summary': operation,
      'db.query.text': text,
    };
    try {
      return await traced(operation, attributes, work);
    } finally {
      const ms = performance.now() - start;
      const context = currentContext();
      if (context) {
        context.database.calls += 1;
        context.database.ms += ms;
      }
      if (ms > slowQueryMs) activeSpan()?.keep();
      observe(metrics.queryDuration, { service: metrics.service, operation }, ms / 1000);
      if (ms > slowQueryMs) {
        metrics.slowQueries.inc();
        slowLog.query({ statement: text, ms });
      }
    }
  }

  const on =
    (target: pg.Pool | pg.PoolClient): Database['query'] =>
    async (operation, text, values = []) => {
      try {
        return await measured(operation, text, () => target.query(text, values as unknown[]));
      } catch (error) {
        throw translate(error);
      }
    };
  const query = on(pool);

  return {
    query,
    async transaction(work) {
      // Where connections are short or the disk is slow, these are where a transaction waits.
      const client = await measured('connect', 'BEGIN', () => pool.connect()).catch((error: unknown) =>
        Promise.reject(translate(error)),
      );
      let broken: Error | undefined;
      try {
        await client.query('BEGIN');
        const result = await work(on(client));
        await measured('commit', 'COMMIT', () => client.query('COMMIT'));
        return result;
      } catch (error) {
        await client.query('ROLLBACK').catch((failure: Error) => (broken = failure));
        throw translate(error);
      } finally {
        client.release(broken);
      }
    },
    async ping() {
      await query('ping', 'SELECT 1');
    },
    close: () => pool.end(),
  };
}
