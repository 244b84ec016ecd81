// `npm run results`: docs/results.md and its charts.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chartsFolder, pageFile, renderPage } from './results/page.ts';

const { page, charts } = await renderPage();
rmSync(chartsFolder, { recursive: true, force: true });
mkdirSync(chartsFolder, { recursive: true });
for (const [name, svg] of Object.entries(charts)) writeFileSync(join(chartsFolder, `${name}.svg`), svg);
writeFileSync(pageFile, page);
