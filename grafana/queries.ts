import type { Builder, Dataquery } from '@grafana/grafana-foundation-sdk/cog';
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus';
import { logs, prometheus } from './data-sources.ts';

/** A PromQL query and the legend of its series. */
export interface Query {
  expr: string;
  /** Labels in double braces, for example `{{service}}`. */
  legend: string;
  /** Shows exemplars, which only queries of histogram buckets have. */
  exemplars?: boolean;
}

const refIdOf = (index: number): string => String.fromCharCode('A'.charCodeAt(0) + index);

/** Builds a range query. */
export function rangeQuery({ expr, legend, exemplars = false }: Query, index: number): DataqueryBuilder {
  const query = new DataqueryBuilder().datasource(prometheus).refId(refIdOf(index)).expr(expr);
  return query.legendFormat(legend).exemplar(exemplars).range();
}

/** Builds an instant query. */
export function instantQuery({ expr, legend }: Query, index: number): DataqueryBuilder {
  const query = new DataqueryBuilder().datasource(prometheus).refId(refIdOf(index)).expr(expr);
  return query.legendFormat(legend).instant();
}

interface Sql extends Dataquery {
  refId: string;
  datasource: typeof logs;
  format: 'table' | 'time_series';
  rawQuery: true;
  editorMode: 'code';
  rawSql: string;
}

/** Builds a query of the logs database, as Grafana's editor saves it, because the SDK has no type for PostgreSQL. */
export function sqlQuery(rawSql: string, format: Sql['format'] = 'table'): Builder<Dataquery> {
  const query = { refId: 'A', datasource: logs, format, rawQuery: true, editorMode: 'code', rawSql };
  return { build: () => query as Dataquery & typeof query };
}

/**
 * Builds queries of quantiles of a histogram. `selector` is its bucket metric, with labels in braces; `by` are the labels
 * of the resulting series.
 */
export function quantiles(
  selector: string,
  percents: readonly number[],
  by: readonly string[] = [],
): Query[] {
  const labels = ['le', ...by].join(', ');
  return percents.map((percent) => ({
    expr: `histogram_quantile(${percent / 100}, sum by (${labels}) (rate(${selector}[$__rate_interval])))`,
    legend: [...by.map((label) => `{{${label}}}`), `${percent} %`].join(' '),
    exemplars: true,
  }));
}

/** Builds the query of a counter's rate per second, by these labels. */
export function rates(selector: string, by: readonly string[]): Query {
  return {
    expr: `sum by (${by.join(', ')}) (rate(${selector}[$__rate_interval]))`,
    legend: by.map((label) => `{{${label}}}`).join(' '),
  };
}
