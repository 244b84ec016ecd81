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
 * Of the last hour: how many, the slowest, the newest and its trace. The trace is looked up at the end, as sorting the
 * rows of a bad hour takes longer than a page waits; of two rows the newer one has the larger id.
 */
const newestOf = (table: string, first: string, second: string) => `
  SELECT ${first}, ${second}, count, slowest_ms, newest,
    (SELECT trace_id FROM logs.${table} WHERE id = traced) AS trace_id
  FROM (
    SELECT ${first}, ${second}, count(*)::integer AS count, max(duration_ms) AS slowest_ms, max(at) AS newest,
      max(id) FILTER (WHERE trace_id IS NOT NULL) AS traced
    FROM logs.${table} WHERE at > now() - interval '1 hour' GROUP BY 1, 2 ORDER BY newest DESC LIMIT 10
  ) AS newest_groups ORDER BY newest DESC`;

function shown<R extends Group>({ newest, ...row }: R) {
  return { ...row, newest_at: newest.toISOString() };
}

/** The tables are made with the first slow row of all. */
async function orNone<T>(rows: Promise<T[]>): Promise<T[]> {
  return rows.catch((error: { code?: string }) => {
    if (error.code === '42P01' || error.code === '3F000') return [];
    throw error;
  });
}

/** What was slow, from the logs database. Throws what `query` throws. */
export function createSlowLogStore({ query }: Database) {
  return {
    async newest(): Promise<Slow> {
      const requests = query<RequestRow>('slow_requests', newestOf('slow_request', 'method', 'route')).then(
        ({ rows }) => rows.map(shown),
      );
      const queries = query<QueryRow>('slow_queries', newestOf('slow_query', 'service', 'statement')).then(
        ({ rows }) => rows.map(shown),
      );
      const [one, other] = await Promise.all([orNone(requests), orNone(queries)]);
      return { requests: one, queries: other };
    },
  };
}
export type SlowLogStore = ReturnType<typeof createSlowLogStore>;
