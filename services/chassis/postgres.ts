import pg from 'pg';
import { isAway, isSilent } from './away.ts';
import { createBreaker } from './breaker.ts';
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

const doesNotAnswer = (cause: unknown) => unavailable('The database does not answer at the moment.', cause);

const translate = (error: unknown): unknown => (isAway(error) ? doesNotAnswer(error) : error);

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
    // When a cache is gone many connections are wanted at once, and on a busy machine they are slow to come.
    connectionTimeoutMillis: 5_000,
    statement_timeout: statementTimeoutMs,
    // When even the server's own timeout does not reach us.
    query_timeout: statementTimeoutMs + 1_000,
    keepAlive: true,
  });
  const breaker = createBreaker(logger, 'the database does not answer: it is asked once a second');

  // Without listeners a connection that breaks, idle or within a transaction, would end the process.
  pool.on('error', (error) =>
    outsideContext(() => logger.warn({ error }, 'an idle database connection broke')),
  );
  pool.on('connect', (client) => client.on('error', () => {}));

  /** @param text the statement; undefined: it waits for a connection, and no query is slow for that */
  async function measured<T>(
    operation: string,
    text: string | undefined,
    work: () => Promise<T>,
  ): Promise<T> {
    const start = performance.now();
    const attributes = {
      'db.system.name': 'postgresql',
      'db.query.summary': operation,
      ...(text === undefined ? {} : { 'db.query.text': text }),
    };
    try {
      return await traced(operation, attributes, work);
    } finally {
      const ms = performance.now() - start;
      const context = currentContext();
      if (context) {
        if (text !== undefined) context.database.calls += 1;
        context.database.ms += ms;
      }
      if (ms > slowQueryMs) activeSpan()?.keep();
      observe(metrics.queryDuration, { service: metrics.service, operation }, ms / 1000);
      if (text !== undefined && ms > slowQueryMs) {
        metrics.slowQueries.inc();
        slowLog.query({ statement: text, ms });
      }
    }
  }

  let answeredAt = 0;
  const answered = () => {
    answeredAt = performance.now();
    breaker.report(true);
  };

  /** While the database is silent, which is when nobody is answered, only one request a second waits for it. */
  async function unlessSilent<T>(work: () => Promise<T>): Promise<T> {
    if (!breaker.allows()) throw doesNotAnswer(new Error('it is silent'));
    const begun = performance.now();
    try {
      const result = await work();
      answered();
      return result;
    } catch (error) {
      if (!isSilent(error)) answered();
      else if (answeredAt < begun) breaker.report(false, error);
      throw translate(error);
    }
  }

  const connect = (): Promise<pg.PoolClient> =>
    pool.idleCount > pool.waitingCount
      ? pool.connect()
      : measured('connect', undefined, () => pool.connect());

  /** Whoever fails takes the connection along: nobody knows what it is good for. */
  async function query<Row extends pg.QueryResultRow>(
    operation: string,
    text: string,
    values: readonly unknown[] = [],
  ): Promise<pg.QueryResult<Row>> {
    return unlessSilent(async () => {
      const client = await connect();
      try {
        const result = await measured(operation, text, () => client.query<Row>(text, values as unknown[]));
        client.release();
        return result;
      } catch (error) {
        client.release(error as Error);
        throw error;
      }
    });
  }

  async function begin(): Promise<pg.PoolClient> {
    const client = await connect();
    try {
      await measured('begin', 'BEGIN', () => client.query('BEGIN'));
      return client;
    } catch (error) {
      client.release(error as Error);
      throw error;
    }
  }

  return {
    query,
    async transaction(work) {
      const client = await unlessSilent(begin);
      let broken: Error | undefined;
      try {
        const result = await work((operation, text, values = []) =>
          measured(operation, text, () => client.query(text, values as unknown[])),
        );
        // Where the disk is slow, the end is where a transaction waits.
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
