import { readFileSync } from 'node:fs';
import { PanelBuilder, TextMode } from '@grafana/grafana-foundation-sdk/text';
import type { Board } from './board.ts';

const text = readFileSync(new URL('../docs/runbooks.md', import.meta.url), 'utf8');
const sections = text.split(/^## /m).slice(1);
const nameOf = (section: string): string => section.slice(0, section.indexOf('\n'));

/** Where the runbook of an alert is shown. @throws when there is none */
export function runbookAddress(alert: string): string {
  const index = sections.findIndex((section) => nameOf(section) === alert);
  if (index < 0) throw new Error(`docs/runbooks.md has no section ${alert}`);
  return `/d/runbooks?viewPanel=panel-${index + 1}`;
}

/** docs/runbooks.md, a panel for each alert: so that a light leads there wherever Grafana runs. */
export const runbooks: Board = {
  uid: 'runbooks',
  title: 'Runbooks',
  description: 'What to do about each alert',
  panels: sections.map((section) =>
    new PanelBuilder()
      .title(nameOf(section))
      .mode(TextMode.Markdown)
      .content(section.slice(nameOf(section).length).trim())
      .span(12)
      .height(16),
  ),
};
