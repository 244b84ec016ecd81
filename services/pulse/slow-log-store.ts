import type { Database } from '@content-platform/chassis';
import type { PulseReport } from '@content-platform/contract';

type Slow = NonNullable<PulseReport['slow']>;
type RequestRow = Omit<Slow['requests'][number], 'newest_at'> & { newest: Date };
type QueryRow = Omit<Slow['queries'][number], 'newest_at'> & { newest: Date };

/** Looks up each group's newest trace after grouping: sorting the rows of a bad hour takes longer than a page waits. */
const newestOf = (table: string, first: string, second: string) => `
  SELECT ${first}, ${second}, count, slowest_ms, newest,
    (SELECT trace_id FROM logs.${table} WHERE id = traced) AS trace_id
  FROM (
    SELECT ${first}, ${second}, count(*)::integer AS count, max(duration_ms) AS slowest_ms, max(at) AS newest,
      max(id) FILTER (WHERE trace_id IS NOT NULL) AS traced
    FROM logs.${table} WHERE at > now() - interval '1 hour' GROUP BY 1, 2 ORDER BY newest DESC LIMIT 10
  ) AS newest_groups ORDER BY newest DESC`;

const toReply = <R extends { newest: Date }>({ newest, ...row }: R) => ({
  ...row,
  newest_at: newest.toISOString(),
});

/** Reads slow requests and queries from the logs database. Throws the errors of `query`. */
export function createSlowLogStore({ query }: Database) {
  /** Returns no groups if the tables do not exist: the first slow row creates them. */
  const groups = <R extends { newest: Date }>(operation: string, text: string) =>
    query<R>(operation, text).then(
      ({ rows }) => rows.map(toReply),
      (error: { code?: string }) => {
        if (error.code === '42P01' || error.code === '3F000') return [];
        throw error;
      },
    );
  return {
    async newest(): Promise<Slow> {
      const [requests, queries] = await Promise.all([
        groups<RequestRow>('slow_requests', newestOf('slow_request', 'method', 'route')),
        groups<QueryRow>('slow_queries', newestOf('slow_query', 'service', 'statement')),
      ]);
      return { requests, queries };
    },
  };
}
export type SlowLogStore = ReturnType<typeof createSlowLogStore>;
