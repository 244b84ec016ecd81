import { describe, expect, test } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { runbookUrl } from '../deploy/render/config.ts';
import { alertNames } from '../test/alerts/rules.ts';
import { dashboardOfAlert } from './targets.ts';
import { dashboards } from './dashboards.ts';
import { allPanels, dataPanels } from './testing/panels.ts';

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');
const filesOf = (path: string) => readdirSync(new URL(path, import.meta.url));
const provisioned = read('provisioning/datasources/datasources.yml');
const panels = dataPanels();
const repeated = (values: string[]) => values.filter((value, index) => values.indexOf(value) !== index);

describe.each(panels)('$dashboard: $title', ({ title, description, type, fieldConfig, targets }) => {
  const { unit, thresholds, custom } = fieldConfig!.defaults;

  test('has a question as title, a normal value, a unit and a query', () => {
    expect(title).toMatch(/^(How|Which|Why|What|Is|Are|When) .+\?$/);
    expect(description).toMatch(/Normal: .+\./);
    expect(unit).toMatch(/^\w+$/);
    expect(targets!.length).toBeGreaterThan(0);
  });

  test('shows exemplars of durations over time', () => {
    // Only queries of buckets have exemplars, and only line charts show them.
    const expected = targets!.map(({ expr = '' }) => type === 'timeseries' && expr.includes('_bucket'));
    expect(targets!.map(({ exemplar = false }) => exemplar)).toEqual(expected);
  });

  test('shows its goal', () => {
    const hasGoal = (thresholds?.steps.length ?? 0) > 1;
    if (type === 'timeseries') expect(custom?.thresholdsStyle?.mode).toBe(hasGoal ? 'dashed' : 'off');
    const tile = { hasGoal: true, color: 'gray', instant: true };
    if (type === 'stat') expect({ hasGoal, ...thresholds!.steps[0], ...targets![0] }).toMatchObject(tile);
  });
});

test('titles and queries are unique', () => {
  const titles = panels.map(({ title }) => title);
  const queries = panels.flatMap(({ targets }) => targets!.map(({ expr, rawSql }) => expr ?? rawSql!));
  expect(repeated(titles)).toEqual([]);
  expect(repeated(queries)).toEqual([]);
});

describe('links', () => {
  const texts = filesOf('dashboards/').map((name) => read(`dashboards/${name}`));
  const addresses = texts.flatMap((text) => [...text.matchAll(/"url": "([^"]+)"/g)].map(([, url]) => url!));

  test('each link leads to a dashboard, a panel, a runbook or a trace', () => {
    const uids = dashboards().map(({ uid }) => `/d/${uid}`);
    const places = allPanels().map(({ dashboard, id }) => `/d/${dashboard}?viewPanel=panel-${id}`);
    const known = [...uids, ...places, ...Object.keys(dashboardOfAlert).map(runbookUrl)];
    const others = addresses.filter((address) => !known.includes(address));
    for (const address of others) expect(address).toMatch(/^\/explore\?/);
    for (const address of others) expect(tracePanes(address)).toMatchObject({ datasource: 'jaeger' });
    expect(others.length).toBeGreaterThan(0);
  });

  /** Parses a link to a trace as Grafana does. @throws Error for any other link */
  function tracePanes(address: string): unknown {
    const url = new URL(address.replace('${__value.raw}', '0af7651916cd43dd'), 'http://grafana');
    const { trace } = JSON.parse(url.searchParams.get('panes')!) as {
      trace: { queries: { query: string }[] };
    };
    expect(trace.queries.map(({ query }) => query)).toEqual(['0af7651916cd43dd']);
    return trace;
  }

  test('each alert has a tile that links to a dashboard and its runbook', () => {
    expect(Object.keys(dashboardOfAlert).toSorted()).toEqual(alertNames);
    const { overrides } = panels.find(({ title }) => title === 'Which alerts are firing?')!.fieldConfig!;
    for (const { matcher, properties } of overrides) {
      const links = properties[0]!.value as { url: string }[];
      const id = Number(/viewPanel=panel-(\d+)/.exec(links[1]!.url)![1]);
      const runbook = allPanels().find((panel) => panel.dashboard === 'runbooks' && panel.id === id)!;
      const { options: name } = matcher;
      expect([links[0]!.url, runbook.title]).toEqual([`/d/${dashboardOfAlert[name]}`, name]);
    }
    expect(overrides.length).toBe(alertNames.length);
  });
});

test('every data source is provisioned, and exemplars lead to Jaeger', () => {
  const uids = [...provisioned.matchAll(/ uid: (\w+)/g)].map(([, uid]) => uid!);
  for (const { datasource, targets } of panels) {
    for (const used of [datasource!, ...targets!.map((target) => target.datasource)])
      expect(uids).toContain(used.uid);
  }
  expect(provisioned).toContain('{ name: trace_id, datasourceUid: jaeger,');
  expect(uids).toContain('jaeger');
});

test('no password is in the repository', () => {
  const passwords = [...provisioned.matchAll(/password: (.+)/g)].map(([, value]) => value);
  expect(passwords).toEqual(['$__file{/etc/grafana/secrets/logs-database-password}']);
});
