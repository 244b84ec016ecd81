import type { Board } from './dashboards.ts';
import { rows, series } from './panels.ts';
import { logs, sqlQuery } from './queries.ts';

const kept = 'Rows are kept for 30 days.';

export const slowLog: Board = {
  uid: 'slow-log',
  title: 'Slow log',
  description: 'Requests over SLOW_REQUEST_MS and queries over SLOW_QUERY_MS, each with its trace',
  panels: [
    series({
      title: 'How many requests and queries were slow?',
      description: `Normal: 0 or a few in a minute. ${kept}`,
      queries: {},
    })
      .datasource(logs)
      .withTarget(
        sqlQuery(
          `SELECT $__timeGroupAlias(at, '1m', 0), count(*) FILTER (WHERE what = 'request') AS requests,
  count(*) FILTER (WHERE what = 'query') AS queries
FROM (SELECT at, 'request' AS what FROM logs.slow_request WHERE $__timeFilter(at)
  UNION ALL SELECT at, 'query' FROM logs.slow_query WHERE $__timeFilter(at)) AS slow
GROUP BY 1 ORDER BY 1`,
          'time_series',
        ),
      )
      .span(24),
    series({
      title: 'What counts as slow?',
      description:
        'Normal: requests over 0.5 s and queries over 0.2 s, unless SLOW_REQUEST_MS and SLOW_QUERY_MS are set.',
      unit: 's',
      queries: { '{{kind}}': 'max by (kind) (slow_threshold_seconds)' },
    }).span(24),
    rows({
      title: 'Which endpoints are slow most often?',
      description:
        'Normal: no rows, or /api/login and /api/upload. If most of the time is database_ms, see the statements below.',
      query: `SELECT method, route, count(*) AS requests, avg(duration_ms) AS average_ms, max(duration_ms) AS longest_ms,
  avg(database_ms) AS database_ms, avg(database_calls) AS database_calls
FROM logs.slow_request WHERE $__timeFilter(at) GROUP BY method, route ORDER BY requests DESC LIMIT 50`,
    }),
    rows({
      title: 'Which statements are slow most often?',
      description: 'Normal: no rows. Statements have placeholders; values are not recorded.',
      query: `SELECT service, statement, count(*) AS queries, avg(duration_ms) AS average_ms, max(duration_ms) AS longest_ms
FROM logs.slow_query WHERE $__timeFilter(at) GROUP BY service, statement ORDER BY queries DESC LIMIT 50`,
    }),
    rows({
      title: 'Which requests were slow?',
      description: `Normal: no rows or a few, newest first. The trace needs a trace collector. ${kept}`,
      query: `SELECT at AS time, method, route, status, duration_ms, database_ms, database_calls, cache, user_id, request_id,
  trace_id AS trace
FROM logs.slow_request WHERE $__timeFilter(at) ORDER BY at DESC LIMIT 200`,
    }),
    rows({
      title: 'Which queries were slow?',
      description: 'Normal: no rows, newest first. request_id is the request that made the query.',
      query: `SELECT at AS time, service, route, duration_ms, statement, request_id, trace_id AS trace
FROM logs.slow_query WHERE $__timeFilter(at) ORDER BY at DESC LIMIT 200`,
    }),
  ],
};
