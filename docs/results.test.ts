import { expect, test } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { chartsFolder, pageFile, renderPage } from './results/page.ts';

test('the page of results tells what the benches and proofs have kept: npm run results', async () => {
  const { page, charts } = await renderPage();
  expect(readFileSync(pageFile, 'utf8')).toBe(page);
  const files = readdirSync(chartsFolder).map((name) => [
    name,
    readFileSync(join(chartsFolder, name), 'utf8'),
  ]);
  expect(Object.fromEntries(files)).toEqual(
    Object.fromEntries(Object.entries(charts).map(([name, svg]) => [`${name}.svg`, svg])),
  );
});
