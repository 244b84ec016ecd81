import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';
import { all, rules, unique } from './rules.ts';

const sections = readFileSync(join(ROOT, 'docs', 'runbooks.md'), 'utf8')
  .split(/^## /m)
  .slice(1)
  .map((text) => ({ name: text.slice(0, text.indexOf('\n')), text }));
test('each alert has a section, and each section an alert', () => {
  expect(sections.map(({ name }) => name).toSorted()).toEqual(unique(all(rules, /- alert: (\w+)/g)));
});

test('the README has each alert, with its severity', () => {
  const table = /^\| alert .+?\n\n/ms.exec(readFileSync(join(ROOT, 'README.md'), 'utf8'))?.[0] ?? '';
  const told = [...table.matchAll(/^\| ([A-Z].+?) +\| (\w+)/gm)].flatMap(([, names, severity]) =>
    names!.split(', ').map((name) => `${name} ${severity}`),
  );
  const alerts = rules.matchAll(/- alert: (\w+)[^]*?severity: (\w+)/g);
  expect(told.toSorted()).toEqual(
    [...new Set([...alerts].map(([, name, severity]) => `${name} ${severity}`))].toSorted(),
  );
});

test('each runbook address leads to a section', () => {
  const addresses = sections.map(({ name }) => `docs/runbooks.md#${name.toLowerCase()}`).toSorted();
  expect(unique(all(rules, /runbook_url: (.+)/g))).toEqual(addresses);
});

test.each(sections)('$name: what is felt, three looks, what to do, how to know', ({ text }) => {
  const parts =
    /\*\*What the user feels\*\*: .+\*\*First looks\*\*(.+)\*\*What to do\*\*: .+\*\*How to know that it worked\*\*: .+/s;
  const [, looks = ''] = parts.exec(text) ?? [];
  expect(looks.match(/^\d\. .*`.+`/gm) ?? []).toHaveLength(3);
});
