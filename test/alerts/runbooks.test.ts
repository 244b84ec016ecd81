import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';
import { sections } from '../../grafana/runbooks.ts';
import { alertNames, rules, unique } from './rules.ts';

/** The names of alerts are single words in upper camel case. */
const alertSections = sections.filter(({ name }) => /^(?:[A-Z][a-z0-9]+){2,}$/.test(name));
const names = alertSections.map(({ name }) => name);

test('each alert has a runbook section, and each section belongs to an alert', () => {
  expect(names.toSorted()).toEqual(alertNames);
});

test('the monitoring page lists each alert with its severity', () => {
  const page = readFileSync(join(ROOT, 'docs', 'operations', 'monitoring.md'), 'utf8');
  const table = /^\| alert .+?\n\n/ms.exec(page)?.[0] ?? '';
  const listed = [...table.matchAll(/^\| (\[.+?) \| (\w+)/gm)].flatMap(([, alerts, severity]) =>
    alerts!.split(', ').map((name) => `${/\w+/.exec(name)![0]} ${severity}`),
  );
  const alerts = rules.matchAll(/- alert: (\w+)[^]*?severity: (\w+)/g);
  expect(listed.toSorted()).toEqual(unique([...alerts].map(([, name, severity]) => `${name} ${severity}`)));
});

test('the symptom index links every section that has checks', () => {
  const index = sections.find(({ name }) => name === 'Symptoms')!.text;
  for (const { name } of sections.filter((section) => section.text.includes('**Checks**')))
    expect(index).toContain(`[${name}](#${name.toLowerCase().replaceAll(' ', '-')})`);
});

test.each(alertSections)('$name: impact, three checks, actions, verification', ({ text }) => {
  const parts = /\*\*Impact\*\*: .+\*\*Checks\*\*(.+)\*\*Actions\*\*\n.+\*\*Verification\*\*: .+/s;
  const [, checks = ''] = parts.exec(text) ?? [];
  expect(checks.match(/^\d\. .*`.+`/gm) ?? []).toHaveLength(3);
});
