import type { Builder, Dataquery } from '@grafana/grafana-foundation-sdk/cog';
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus';

/** The data sources as `provisioning/datasources` names them. */
export const prometheus = { type: 'prometheus', uid: 'prometheus' };
export const logs = { type: 'grafana-postgresql-datasource', uid: 'logs' };
const jaeger = { type: 'jaeger', uid: 'jaeger' };

/** Returns the path of Grafana's page for the trace whose id is in the clicked cell. */
export function traceAddress(): string {
  const panes = {
    trace: {
      datasource: jaeger.uid,
      queries: [{ refId: 'A', datasource: jaeger, query: '<id>' }],
      range: { from: 'now-1h', to: 'now' },
    },
  };
  // Grafana replaces the variable only if its braces are not escaped.
  const escaped = encodeURIComponent(JSON.stringify(panes)).replace('%3Cid%3E', '${__value.raw}');
  return `/explore?schemaVersion=1&panes=${escaped}`;
}

/** PromQL queries by the legend of their series, which may have labels in double braces: `{{service}}`. */
export type Queries = Readonly<Record<string, string>>;

/** Builds the queries, each with the method of its kind: `range` or `instant`. */
export function promQueries(queries: Queries, kind: 'range' | 'instant'): DataqueryBuilder[] {
  return Object.entries(queries).map(([legend, expr], index) => {
    const refId = String.fromCharCode('A'.charCodeAt(0) + index);
    const query = new DataqueryBuilder().datasource(prometheus).refId(refId).expr(expr).legendFormat(legend);
    return kind === 'instant' ? query.instant() : query.exemplar(expr.includes('_bucket')).range();
  });
}

/** Builds a query of the logs database, as Grafana's editor saves it, because the SDK has no type for PostgreSQL. */
export function sqlQuery(rawSql: string, format: 'table' | 'time_series' = 'table'): Builder<Dataquery> {
  const query = { refId: 'A', datasource: logs, format, rawQuery: true, editorMode: 'code', rawSql };
  return { build: () => query as Dataquery & typeof query };
}

/** Builds queries of quantiles of the buckets that `selector` selects; each series has the labels `by`. */
export function quantiles(selector: string, percents: readonly number[], by: readonly string[] = []) {
  const labels = ['le', ...by].join(', ');
  return Object.fromEntries(
    percents.map((percent) => [
      [...by.map((label) => `{{${label}}}`), `${percent} %`].join(' '),
      `histogram_quantile(${percent / 100}, sum by (${labels}) (rate(${selector}[$__rate_interval])))`,
    ]),
  );
}

/** Builds the query of a counter's rate per second, by these labels. */
export function rates(selector: string, by: readonly string[]): Queries {
  const legend = by.map((label) => `{{${label}}}`).join(' ');
  return { [legend]: `sum by (${by.join(', ')}) (rate(${selector}[$__rate_interval]))` };
}
