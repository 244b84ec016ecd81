import { readFileSync } from 'node:fs';

const file = new URL('../docs/operations/runbooks.md', import.meta.url);

/** The sections of docs/operations/runbooks.md in their order, without the heading. */
export const sections = readFileSync(file, 'utf8')
  .split(/^## /m)
  .slice(1)
  .map((text) => {
    const end = text.indexOf('\n');
    return { name: text.slice(0, end), text: text.slice(end).trim() };
  });

/** The sections of alerts. Their names are single words in upper camel case. */
export const alertSections = sections.filter(({ name }) => /^(?:[A-Z][a-z0-9]+){2,}$/.test(name));
