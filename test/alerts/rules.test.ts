import { beforeAll, expect, test } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';
import { runCommand } from '../../deploy/local/run-command.ts';
import { runbookUrl } from '../../deploy/render/config.ts';
import { findPrograms, type PrometheusPrograms } from '../support/prometheus-programs.ts';

const folder = join(ROOT, 'deploy', 'prometheus');
const read = (...path: string[]) => readFileSync(join(folder, ...path), 'utf8');
const filesOf = (name: string) => readdirSync(join(folder, name)).map((file) => join(name, file));
const rules = filesOf('rules').map((file) => read(file));
const tests = filesOf('tests');
/** The first group of every match. */
const all = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map((match) => match[1]!);
const unique = (names: string[]) => [...new Set(names)].toSorted();

let programs: PrometheusPrograms;
beforeAll(async () => {
  programs = await findPrograms();
}, 180_000);

async function promtool(...args: string[]): Promise<void> {
  const { code, output } = await runCommand(programs.promtool, args, { cwd: folder });
  if (code !== 0) throw new Error(output);
}

test.each(['prometheus.yml', 'prometheus.compose.yml'])('promtool accepts %s and its rules', (file) =>
  promtool('check', 'config', '--lint=all', '--lint-fatal', file),
);

test.each(tests)('promtool: %s', (file) => promtool('test', 'rules', file));

test('each alert has a severity, a waiting time, a summary with the value, a description and its runbook_url', () => {
  for (const text of rules) {
    for (const alert of text.split(/^ +- (?=alert:|record:)/m).filter((rule) => rule.startsWith('alert:'))) {
      expect(alert).toMatch(/^ +for: \d+[mh]$/m);
      expect(alert).toMatch(/severity: (critical|warning)/);
      expect(alert).toMatch(/summary: (>-\n)?.*\{\{ \$value/);
      expect(alert).toMatch(/description: '[A-Z].+\.'/);
      expect(alert).toMatch(/description: '[A-Z].+\.'/);
      const [name] = all(alert, /^alert: (\w+)/g);
      expect(all(alert, /runbook_url: (.+)/g)).toEqual([runbookUrl(name!)]);
    }
  }
});

test('each alert has a test in which it fires and one in which it does not', () => {
  const texts = tests.map((file) => read(file)).join('');
  const names = unique(all(rules.join(''), /- alert: (\w+)/g));
  expect(unique(all(texts, /alertname: (\w+)\n +exp_alerts: \[\]/g))).toEqual(names);
  expect(unique(all(texts, /alertname: (\w+)\n +exp_alerts:\n/g))).toEqual(names);
});

test('MetricMissing covers each metric that an alert needs', () => {
  const metrics = (text: string) =>
    unique(all(text, /\b((?:[a-z]+_)+(?:total|bucket|count|bytes|seconds|length|open|clears))\b(?!:)/g));
  const resting = rules.filter((text) => !text.includes('MetricMissing'));
  const missing = rules.find((text) => text.includes('MetricMissing'))!;
  const names = resting.flatMap((text) => metrics(text.replaceAll(/[\w]+:[\w:]+/g, '')));
  expect(unique(all(missing, /metric: (\w+)/g))).toEqual(unique(names));
});
