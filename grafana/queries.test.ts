import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { withDatabase } from '../test/support/connections.ts';
import { closeEvents } from '../test/support/events.ts';
import { read } from '../test/support/platform.ts';
import { startPrometheus, type Prometheus } from '../test/support/prometheus.ts';
import { closeRecords, freshId, save } from '../test/support/records.ts';
import { stack } from '../test/support/stack.ts';
import { startTraffic, type Traffic } from '../test/support/traffic.ts';
import { until } from '../test/support/wait.ts';
import { dataPanels } from './testing/panels.ts';
import { useEverything } from './testing/traffic.ts';

/** Runs the query of every panel against a real Prometheus or PostgreSQL while the stack is used. */
const panels = dataPanels().map(({ dashboard, title, targets }) => ({ dashboard, title, targets: targets! }));
const byPrometheus = panels.filter(({ targets }) => targets[0]!.expr !== undefined);
const byPostgres = panels.filter(({ targets }) => targets[0]!.rawSql !== undefined);

let prometheus: Prometheus;
let traffic: Traffic;
let logs: pg.Pool;
const names = Object.keys(stack().services);

beforeAll(async () => {
  logs = await asGrafana();
  // No Alertmanager runs, because other tests cover alerts.
  prometheus = await startPrometheus('127.0.0.1:9');
  await until('every process is scraped', async () => {
    const [sample] = await prometheus.query('sum(up{job="content-platform"})');
    return Number(sample?.value[1]) === names.length;
  });
  const id = freshId();
  await save('webform', id, 'Read again and again');
  traffic = startTraffic(4, () => read('webform', id));
  await useEverything();
}, 180_000);
afterAll(async () => {
  await traffic?.stop();
  await prometheus?.stop();
  await logs?.end();
  await closeEvents();
  await closeRecords();
});

/** Creates Grafana's role as the page on monitoring describes, and connects as this role. */
async function asGrafana(): Promise<pg.Pool> {
  const page = readFileSync(new URL('../docs/operations/monitoring.md', import.meta.url), 'utf8');
  const [, statements, password] = /```sql\n(CREATE ROLE grafana.+'([\w-]+)'[^]*?)```/.exec(page)!;
  await withDatabase(stack().logs, (owner) => owner.query(statements!));
  const url = new URL(stack().logs);
  [url.username, url.password] = ['grafana', password!];
  return new pg.Pool({ connectionString: url.href, max: 1 });
}
const withValues = (expression: string) =>
  expression.replaceAll('$__rate_interval', '10m').replaceAll('$service', 'content-cache');

test.each(byPrometheus)('$dashboard: $title', async ({ targets }) => {
  for (const { expr } of targets) {
    const query = withValues(expr!);
    expect(query).not.toContain('$');
    await until(
      `${query} has a value`,
      async () => (await prometheus.query(query)).some(({ value }) => Number.isFinite(Number(value[1]))),
      30_000,
    );
  }
});

/** Replaces Grafana's macros for the last hour in steps of one minute. */
const withoutMacros = (text: string) =>
  text
    .replaceAll('$__timeFilter(at)', "at BETWEEN now() - interval '1 h' AND now()")
    .replaceAll(
      "$__timeGroupAlias(at, '1m', 0)",
      'to_timestamp(floor(extract(epoch FROM at) / 60) * 60) AS "time"',
    );

test.each(byPostgres)('$dashboard: $title', async ({ targets }) => {
  for (const { rawSql } of targets) {
    const query = withoutMacros(rawSql!);
    expect(query).not.toContain('$');
    await until('the query returns rows', async () => (await logs.query(query)).rows.length > 0, 30_000);
  }
});

test('Grafana can read the slow log and nothing else', async () => {
  await expect(logs.query('DELETE FROM logs.slow_query')).rejects.toThrow('permission denied');
  const platform = new URL(stack().postgres);
  const { username, password } = new URL(logs.options.connectionString!);
  Object.assign(platform, { username, password });
  const other = new pg.Pool({ connectionString: platform.href, max: 1 });
  await expect(other.query('SELECT FROM content.record')).rejects.toThrow('permission denied');
  await other.end();
});

test('the dashboard Service offers every service', async () => {
  const board = readFileSync(new URL('dashboards/service.json', import.meta.url), 'utf8');
  const [, series] = /"label_values\((\S+), service\)"/.exec(board)!;
  const found = await prometheus.query(`group by (service) (${series})`);
  expect(found.map(({ metric }) => metric.service)).toEqual(expect.arrayContaining(names));
});

/** Returns the names of a process's metrics, except the default metrics of Node. */
async function ownMetrics(internal: string): Promise<string[]> {
  const text = await (await fetch(`${internal}/metrics`)).text();
  const found = [...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name!);
  return found.filter((name) => !/^(process|nodejs)_/.test(name));
}

test('every metric of the platform is on a dashboard', async () => {
  const metrics = await Promise.all(
    Object.values(stack().services).map(({ internal }) => ownMetrics(internal)),
  );
  const shown = byPrometheus.flatMap(({ targets }) => targets.map(({ expr }) => expr!)).join('\n');
  const isShown = (name: string) => new RegExp(`\\b${name}(_bucket|_count|_sum)?\\b`).test(shown);
  const unique = [...new Set(metrics.flat())];
  expect(unique.length).toBeGreaterThan(15);
  expect(unique.filter((name) => !isShown(name))).toEqual([]);
});
