import pg from 'pg';
import { createBreaker } from './concurrency.ts';
import { currentContext, outsideContext, traced } from './context.ts';
import { unavailable } from './http-error.ts';
import type { Logger } from './logger.ts';
import { observe, type Metrics } from './metrics.ts';

/** Runs statements. `operation` names the call for metrics and logs; `text` has placeholders, never values. */
export interface Database {
  /** Throws 503 when the database is unavailable, restarts or is too slow; otherwise PostgreSQL's error. */
  query<Row extends pg.QueryResultRow>(
    operation: string,
    text: string,
    values?: readonly unknown[],
  ): Promise<pg.QueryResult<Row>>;
  /** Commits if `work` succeeds, otherwise rolls back. Throws the errors of `work` and those of `query`. */
  transaction<T>(work: (query: Database['query']) => Promise<T>): Promise<T>;
  ping(): Promise<void>;
  close(): Promise<void>;
}

export interface DatabaseOptions {
  url: string;
  logger: Logger;
  metrics: Metrics;
  /** If absent, slow queries are counted but not recorded. */
  slowLog?: { query(slow: { statement: string; ms: number }): void };
  /** Duration in ms above which a query is slow. Default: no query is slow. */
  slowQueryMs?: number;
  maxConnections?: number;
  /** PostgreSQL cancels a statement after this time. */
  statementTimeoutMs?: number;
}

// Node's network errors and SQLSTATE: classes 08 connection, 28 login refused, 3D no such database, 53 resources, 57
// shutdown or statement timeout, 58 system errors; 25006 and 55000 refused by a standby; 55P03 lock timeout.
const unavailableCodes =
  /^(ECONNREFUSED|ECONNRESET|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_(AGAIN|FAIL)|EPIPE|(08|28|3D|53|57|58)...|25006|55000|55P03)$/;
/** Messages of node-postgres for a lost connection. Its own errors have no codes. */
const lostMessages = /Connection terminated|encountered a connection error|establishing an SSL connection/;
const timeoutCodes = /^(ETIMEDOUT|EHOSTUNREACH|EAI_AGAIN)$/;
/** Messages of node-postgres when connecting, a query or waiting for a pooled connection takes too long. */
const timeoutMessages =
  /connection timeout|^timeout expired$|Query read timeout|timeout exceeded when trying to connect/;
/** PostgreSQL ends the transaction of a process that is suspended or cut off, whose locks would stay for hours. */
const beginText = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '30s'";
/** If SELECT 1 takes longer, the server at the other end of the connection is unreachable. */
const pingLimitMs = 2_000;

/** Returns whether the database is unavailable or refuses the login. The statement is then not the cause. */
export function isUnavailable(error: unknown): boolean {
  const { code = '', message = '' } = error as { code?: string; message?: string };
  return unavailableCodes.test(code) || lostMessages.test(message) || isTimeout(error);
}

/** Returns whether a time limit of the client ended the query. The next query would probably wait as long. */
function isTimeout(error: unknown): boolean {
  const { code = '', message = '' } = error as { code?: string; message?: string };
  return timeoutCodes.test(code) || timeoutMessages.test(message);
}

const databaseUnavailable = (cause: unknown) =>
  unavailable('The database is unavailable. Retry later.', cause);

const translate = (error: unknown): unknown => (isUnavailable(error) ? databaseUnavailable(error) : error);

export function createDatabase(options: DatabaseOptions): Database {
  const { url, logger, metrics, slowLog } = options;
  const { slowQueryMs = Infinity, maxConnections = 10, statementTimeoutMs = 5_000 } = options;
  const breaker = createBreaker(logger, 'database unavailable; one query a second tests the connection');

  function openPool(): pg.Pool {
    const opened = new pg.Pool({
      connectionString: url,
      application_name: metrics.service,
      max: maxConnections,
      // After the cache was lost, many connections open at once. On a busy machine this takes seconds.
      connectionTimeoutMillis: 5_000,
      statement_timeout: statementTimeoutMs,
      // Client-side limit, in case the server's timeout does not arrive.
      query_timeout: statementTimeoutMs + 1_000,
      keepAlive: true,
    });
    // Without these listeners a connection that breaks, idle or within a transaction, would end the process.
    opened.on('error', (error) =>
      outsideContext(() => logger.warn({ error }, 'idle database connection lost; the pool replaces it')),
    );
    opened.on('connect', (client) => client.on('error', () => {}));
    return opened;
  }
  let pool = openPool();

  /** Measures `work`. `text`: the statement; undefined while waiting for a connection, which is never a slow query. */
  async function measured<T>(operation: string, text: string | undefined, work: () => Promise<T>) {
    const start = performance.now();
    const attributes = {
      'db.system.name': 'postgresql',
      'db.query.summary': operation,
      ...(text === undefined ? {} : { 'db.query.text': text }),
    };
    try {
      return await traced(operation, attributes, (span) =>
        work().finally(() => {
          // Before the span ends: its request may have ended already.
          if (performance.now() - start > slowQueryMs) span?.forceSampling();
        }),
      );
    } finally {
      const ms = performance.now() - start;
      const context = currentContext();
      if (context) {
        if (text !== undefined) context.database.calls += 1;
        context.database.ms += ms;
      }
      observe(metrics.queryDuration, { service: metrics.service, operation }, ms / 1000);
      if (text !== undefined && ms > slowQueryMs) {
        metrics.slowQueries.inc();
        slowLog?.query({ statement: text, ms });
      }
    }
  }

  /** When the database last responded, or the pool was opened. */
  let respondedAt = 0;
  const reportResponse = () => {
    respondedAt = performance.now();
    breaker.report(true);
  };

  /** Runs `work`. While the database responds to no query, only one call a second waits for it. */
  async function unlessHanging<T>(work: () => Promise<T>): Promise<T> {
    if (!breaker.allows()) throw databaseUnavailable(new Error('the database does not respond'));
    const startedAt = performance.now();
    try {
      const result = await work();
      reportResponse();
      return result;
    } catch (error) {
      if (!isTimeout(error)) reportResponse();
      else if (respondedAt < startedAt) {
        breaker.report(false, error);
        // After a failover, all connections may lead to the old server. `end` fails if the pool is closing already.
        pool.end().catch(() => {});
        pool = openPool();
        respondedAt = performance.now();
      }
      throw translate(error);
    }
  }

  /** Takes a connection from the pool. Measures only a wait for it: an idle connection is available immediately. */
  const connect = (): Promise<pg.PoolClient> =>
    pool.idleCount > pool.waitingCount
      ? pool.connect()
      : measured('connect', undefined, () => pool.connect());

  /** Runs the first statement on a connection, which the caller releases. */
  async function connectAndRun<Row extends pg.QueryResultRow>(
    operation: string,
    text: string,
    config: pg.QueryConfig,
  ) {
    const client = await connect();
    try {
      return { client, result: await measured(operation, text, () => client.query<Row>(config)) };
    } catch (error) {
      // Closes the connection, whose state is unknown after an error.
      client.release(error as Error);
      throw error;
    }
  }

  async function query<Row extends pg.QueryResultRow>(
    operation: string,
    text: string,
    values: readonly unknown[] = [],
    limitMs?: number,
  ): Promise<pg.QueryResult<Row>> {
    // node-postgres accepts a `query_timeout` for each query, but the type QueryConfig lacks it.
    const config = { text, values: values as unknown[], query_timeout: limitMs } as pg.QueryConfig;
    return unlessHanging(async () => {
      const { client, result } = await connectAndRun<Row>(operation, text, config);
      client.release();
      return result;
    });
  }

  return {
    query,
    async transaction(work) {
      const { client } = await unlessHanging(() => connectAndRun('begin', 'BEGIN', { text: beginText }));
      let broken: Error | undefined;
      try {
        const result = await work(async (operation, text, values = []) => {
          const found = await measured(operation, text, () => client.query(text, values as unknown[]));
          reportResponse();
          return found;
        });
        // Measures the end of the transaction, which waits on a slow disk.
        await measured('commit', 'COMMIT', () => client.query('COMMIT'));
        return result;
      } catch (error) {
        // A ROLLBACK would wait behind the statement that hangs. A server that is a standby now must not be used again.
        if (isUnavailable(error)) broken = error as Error;
        else await client.query('ROLLBACK').catch((failure: Error) => (broken = failure));
        throw translate(error);
      } finally {
        client.release(broken);
      }
    },
    async ping() {
      await query('ping', 'SELECT 1', [], pingLimitMs);
    },
    close: () => pool.end(),
  };
}
