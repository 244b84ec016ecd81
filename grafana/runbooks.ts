import { readFileSync } from 'node:fs';
import { PanelBuilder } from '@grafana/grafana-foundation-sdk/text';
import { runbookBaseUrl } from '../deploy/render/config.ts';
import type { Board } from './dashboards.ts';

const file = new URL('../docs/operations/runbooks.md', import.meta.url);

/** The sections of docs/operations/runbooks.md in their order, without the heading. */
export const sections = readFileSync(file, 'utf8')
  .split(/^## /m)
  .slice(1)
  .map((text) => {
    const end = text.indexOf('\n');
    return { name: text.slice(0, end), text: text.slice(end).trim() };
  });

const anchorOf = (name: string): string => name.toLowerCase().replaceAll(' ', '-');

/** Returns the path of the panel that shows the runbook of an alert. @throws Error if the runbook is missing */
export function runbookAddress(alert: string): string {
  const index = sections.findIndex(({ name }) => name === alert);
  if (index < 0) throw new Error(`docs/operations/runbooks.md has no section ${alert}`);
  return `/d/runbooks?viewPanel=panel-${index + 1}`;
}

/** Links within the page lead to panels. Links to other pages become text, because Grafana does not have these pages. */
function withPanelLinks(text: string): string {
  return text.replaceAll(/\[([^\]]+)\]\((?!https?:)([^)]+)\)/g, (_, label: string, target: string) => {
    const section = sections.find(({ name }) => target === `#${anchorOf(name)}`);
    return section ? `[${label}](${runbookAddress(section.name)})` : label;
  });
}

export const runbooks: Board = {
  uid: 'runbooks',
  title: 'Runbooks',
  description: 'What to check and what to do for each alert and incident',
  panels: sections.map(({ name, text }) =>
    new PanelBuilder()
      .title(name)
      .content(
        `[Open this page in the documentation](${runbookBaseUrl()}#${anchorOf(name)})\n\n${withPanelLinks(text)}`,
      )
      .span(12)
      .height(16),
  ),
};
