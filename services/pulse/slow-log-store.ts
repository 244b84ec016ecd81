import type { Database } from '@content-platform/chassis';
import type { PulseReport } from '@content-platform/contract';

type Slow = NonNullable<PulseReport['slow']>;
type Own = 'count' | 'slowest_ms' | 'newest_at' | 'trace_id';
interface Group {
  count: number;
  slowest_ms: number;
  newest: Date;
  trace_id: string | null;
}
type RequestRow = Omit<Slow['requests'][number], Own> & Group;
type QueryRow = Omit<Slow['queries'][number], Own> & Group;

/**
 * Groups the rows of the last hour: count, slowest, newest and the newest trace. The trace is looked up by the largest id
 * at the end, because sorting the rows of a bad hour takes longer than a page waits.
 */
const newestOf = (table: string, first: string, second: string) => `
  SELECT ${first}, ${second}, count, slowest_ms, newest,
    (SELECT trace_id FROM logs.${table} WHERE id = traced) AS trace_id
  FROM (
    SELECT ${first}, ${second}, count(*)::integer AS count, max(duration_ms) AS slowest_ms, max(at) AS newest,
      max(id) FILTER (WHERE trace_id IS NOT NULL) AS traced
    FROM logs.${table} WHERE at > now() - interval '1 hour' GROUP BY 1, 2 ORDER BY newest DESC LIMIT 10
  ) AS newest_groups ORDER BY newest DESC`;

function toReply<R extends Group>({ newest, ...row }: R) {
  return { ...row, newest_at: newest.toISOString() };
}

/** Returns no rows if the tables do not exist: the first slow row creates them. */
async function orNone<T>(rows: Promise<T[]>): Promise<T[]> {
  return rows.catch((error: { code?: string }) => {
    if (error.code === '42P01' || error.code === '3F000') return [];
    throw error;
  });
}

/** Reads slow requests and queries from the logs database. Throws the errors of `query`. */
export function createSlowLogStore({ query }: Database) {
  return {
    async newest(): Promise<Slow> {
      const requests = query<RequestRow>('slow_requests', newestOf('slow_request', 'method', 'route')).then(
        ({ rows }) => rows.map(toReply),
      );
      const queries = query<QueryRow>('slow_queries', newestOf('slow_query', 'service', 'statement')).then(
        ({ rows }) => rows.map(toReply),
      );
      const [one, other] = await Promise.all([orNone(requests), orNone(queries)]);
      return { requests: one, queries: other };
    },
  };
}
export type SlowLogStore = ReturnType<typeof createSlowLogStore>;
