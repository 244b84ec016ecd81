import { beforeAll, expect, test } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from '../../deploy/local/run-command.ts';
import { runbookUrl } from '../../deploy/render/config.ts';
import { findPrograms, type PrometheusPrograms } from '../support/prometheus-programs.ts';
import { alertNames, all, folder, ruleFiles, unique } from './rules.ts';

const tests = readdirSync(join(folder, 'tests')).map((file) => join('tests', file));

let programs: PrometheusPrograms;
beforeAll(async () => {
  programs = await findPrograms();
}, 180_000);

async function promtool(...args: string[]): Promise<void> {
  const { code, output } = await runCommand(programs.promtool, args, { cwd: folder });
  if (code !== 0) throw new Error(output);
}

test('promtool accepts the configurations and their rules', () =>
  promtool('check', 'config', '--lint=all', '--lint-fatal', 'prometheus.yml', 'prometheus.compose.yml'));

test('promtool passes all tests of rules', () => promtool('test', 'rules', ...tests), 600_000);

test('each alert has a severity, a for clause, a summary with the value, a description and its runbook_url', () => {
  for (const text of ruleFiles) {
    for (const alert of text.split(/^ +- (?=alert:|record:)/m).filter((rule) => rule.startsWith('alert:'))) {
      expect(alert).toMatch(/^ +for: \d+[mh]$/m);
      expect(alert).toMatch(/severity: (critical|warning)/);
      expect(alert).toMatch(/summary: (>-\n)?.*\{\{ \$value/);
      expect(alert).toMatch(/description: '[A-Z].+\.'/);
      const [name] = all(alert, /^alert: (\w+)/g);
      expect(all(alert, /runbook_url: (.+)/g)).toEqual([runbookUrl(name!)]);
    }
  }
});

test('each alert has a test case that fires and one that does not', () => {
  const texts = tests.map((file) => readFileSync(join(folder, file), 'utf8')).join('');
  expect(unique(all(texts, /alertname: (\w+)\n +exp_alerts: \[\]/g))).toEqual(alertNames);
  expect(unique(all(texts, /alertname: (\w+)\n +exp_alerts:\n/g))).toEqual(alertNames);
});

test('MetricMissing covers every metric that the alerts use', () => {
  const metrics = (text: string) =>
    unique(all(text, /\b((?:[a-z]+_)+(?:total|bucket|count|bytes|seconds|length|open|clears))\b(?!:)/g));
  const others = ruleFiles.filter((text) => !text.includes('MetricMissing'));
  const missing = ruleFiles.find((text) => text.includes('MetricMissing'))!;
  const names = others.flatMap((text) => metrics(text.replaceAll(/[\w]+:[\w:]+/g, '')));
  expect(unique(all(missing, /metric: (\w+)/g))).toEqual(unique(names));
});
