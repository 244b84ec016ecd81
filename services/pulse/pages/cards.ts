import type { PulseReport } from '@content-platform/contract';
import { formatBytes, formatRatio, formatSeconds } from './format.ts';
import { html, type Content, type Html } from './html.ts';
import { card, timeOfDay, stateMark, dateTime, table } from './parts.ts';

const notAvailable = html`<p>Not available. The page tries again.</p>`;
const orDash = <T>(value: T | null, format: (value: T) => string) => (value === null ? '–' : format(value));
const ms = (value: number) => formatSeconds(value / 1_000);
const textColumns = (...headings: string[]) => headings.map((heading) => ({ heading }));
/** Returns right-aligned columns. */
const numberColumns = (...headings: string[]) => headings.map((heading) => ({ heading, isNumber: true }));

export function alertsNotice({ alert_receivers: receivers }: PulseReport): Html {
  if (receivers?.length === 0)
    return html`<p class="problem" id="alerts" data-part role="alert">
      Alerts go nowhere, because Alertmanager has no receiver.
    </p>`;
  const text = receivers
    ? `Alerts go to: ${receivers.join(', ')}.`
    : 'It is unknown whether alerts reach anyone: ALERTMANAGER_URL is not set, or Alertmanager does not respond.';
  return html`<p class="note" id="alerts" data-part>${text}</p>`;
}

export function routesCard({ routes }: PulseReport): Html {
  const columns = [...textColumns('Route'), ...numberColumns('95 % within', 'Requests', 'Failed')];
  const rows = routes
    .toSorted((a, b) => b.failed - a.failed)
    .slice(0, 15)
    .map(({ method, route, p95, requests, failed }) => [
      html`<code>${method} ${route}</code>`,
      formatSeconds(p95),
      requests,
      failed,
    ]);
  const body = table('routes', columns, rows, 'No requests.');
  const note = 'At the gateway in the last 5 minutes. At most 15: most failures first, then the slowest.';
  return card('routes', 'Routes', note, body);
}

function traceLink(id: string, traceId: string | null, jaeger: string | undefined): Content {
  if (traceId === null) return '–';
  const short = html`<code>${traceId.slice(0, 8)}</code>`;
  return jaeger ? html`<a id="${id}" href="${jaeger}/trace/${traceId}">${short}</a>` : short;
}

/** Maximum number of rows on the page; the JSON report has more. */
const maxSlowRows = 6;
const slowColumns = (first: string) => [
  ...textColumns(first),
  ...numberColumns('Count', 'Slowest', 'Newest (UTC)'),
  ...textColumns('Trace'),
];

type Slow = NonNullable<PulseReport['slow']>;
const slowFigures = (
  group: Slow['requests'][number] | Slow['queries'][number],
  id: string,
  jaeger: string | undefined,
) => [group.count, ms(group.slowest_ms), timeOfDay(group.newest_at), traceLink(id, group.trace_id, jaeger)];

export function slowRequestsCard({ slow }: PulseReport, jaeger: string | undefined): Html {
  const rows = slow?.requests
    .slice(0, maxSlowRows)
    .map((group, index) => [
      html`<code>${group.method} ${group.route}</code>`,
      ...slowFigures(group, `request-trace-${index}`, jaeger),
    ]);
  const body = rows ? table('slow-requests', slowColumns('Route'), rows, 'None.') : notAvailable;
  return card('slow-requests', 'Slow requests', `The newest ${maxSlowRows} of the last hour.`, body);
}

export function slowQueriesCard({ slow }: PulseReport, jaeger: string | undefined): Html {
  const rows = slow?.queries
    .slice(0, maxSlowRows)
    .map((group, index) => [
      html`<span>${group.service}</span>
        <code class="statement" id="statement-${index}" tabindex="0">${group.statement}</code>`,
      ...slowFigures(group, `query-trace-${index}`, jaeger),
    ]);
  const body = rows ? table('slow-queries', slowColumns('Query'), rows, 'None.') : notAvailable;
  return card('slow-queries', 'Slow queries', `The newest ${maxSlowRows} of the last hour.`, body);
}

/** `mayRetry`: the viewer may see jobs and retry them. */
export function failedJobsCard({ failed_jobs: jobs }: PulseReport, mayRetry: boolean): Html {
  if (!mayRetry) {
    return card('jobs', 'Failed jobs', null, html`<p>You need the scope jobs:manage to see failed jobs.</p>`);
  }
  // The button's id is the class, so that it keeps the focus when a newer job replaces the example.
  const rows = jobs?.map(({ class: name, count, first_failed_at: first, last_failed_at: last, example }) => [
    html`<span>${name}</span> <span class="note">Job ${example.id}: ${example.error}</span>`,
    count,
    dateTime(first),
    dateTime(last),
    html`<form method="post" action="/pulse/failed-jobs/${example.id}/retry">
      <button id="retry-${name}">Retry<span class="unseen"> job ${example.id}</span></button>
    </form>`,
  ]);
  const columns = [
    ...textColumns('Class'),
    ...numberColumns('Count'),
    ...textColumns('First (UTC)', 'Last (UTC)', 'Action'),
  ];
  const body = rows ? table('jobs', columns, rows, 'No job is open.') : notAvailable;
  const note = 'Open jobs by class, with the newest job of each class. The button processes that job again.';
  return card('jobs', 'Failed jobs', note, body);
}

export function cacheCard({ cache }: PulseReport): Html {
  const { memory_bytes: used, memory_limit_bytes: limit } = cache;
  const figures = numberColumns('Hits', 'Misses', 'Bypasses', 'Hit ratio', 'Not announced');
  const rows = cache.models.map((one) => [
    one.model,
    one.hits,
    one.misses,
    one.bypasses,
    orDash(one.hit_ratio, formatRatio),
    one.invalidations_missed,
  ]);
  const room = limit === null ? 'without a limit' : `of ${formatBytes(limit)}`;
  const memory = used === null ? '' : `Redis uses ${formatBytes(used)} ${room}.`;
  const note = `Reads of the last 5 minutes, and changes of the last hour that were not announced. ${memory}`;
  const columns = [...textColumns('Model'), ...figures];
  return card('cache', 'Cache by model', note, table('cache', columns, rows, ''));
}

export function processesCard({ processes }: PulseReport): Html {
  const figures = numberColumns('CPU', 'Memory', 'Event loop', 'Started (UTC)', 'Restarts');
  const rows = processes.map((one) => [
    html`${one.service ?? '?'} <span class="note">${one.address.replace('http://', '')}</span>`,
    stateMark(one.up, 'up', 'down'),
    orDash(one.cpu, formatRatio),
    orDash(one.memory_bytes, formatBytes),
    orDash(one.event_loop_delay, formatSeconds),
    one.started_at === null ? '–' : dateTime(one.started_at),
    one.restarts,
  ]);
  const note =
    'CPU: share of one core in the last minute. Event loop: delay, 99th percentile. Restarts: in the last hour.';
  const columns = [...textColumns('Process', 'State'), ...figures];
  return card('processes', 'Processes', note, table('processes', columns, rows, 'No process was found.'));
}
