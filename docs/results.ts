// `npm run results`: docs/results.md and its charts, from what the benches and proofs have kept.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { ROOT } from '../deploy/local/config.ts';
import { hardness } from './results/hardness.ts';
import { speed } from './results/speed.ts';
import type { Kept, Section } from './results/section.ts';

const charts = join(import.meta.dirname, 'results', 'charts');

/** What a bench or proof has kept; undefined: it has not been run yet. */
function read(file: string): Kept | undefined {
  const path = join(ROOT, 'test', file);
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Kept) : undefined;
}

/** When and where something was measured, in a line. */
function around({ date, machine }: Kept): string {
  const { cpu, cores, memoryGiB, versions = {}, load } = machine;
  const list = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const busy =
    load && load.before[0]! > cores ? ` The machine was busy with other work (load ${load.before[0]}).` : '';
  return `${date.slice(0, 10)}, ${cores} cores (${cpu}), ${memoryGiB} GiB; ${list.join(', ')}.${busy}`;
}

function write({ title, file, repeat, why, tell }: Section): string {
  const kept = read(file);
  const again = `Repeat: \`${repeat}\`.`;
  if (!kept) return `### ${title}\n\nNot measured yet. ${again}`;
  const { text, charts: drawn = {} } = tell(kept);
  const pictures = Object.entries(drawn).map(([name, svg]) => {
    writeFileSync(join(charts, `${name}.svg`), svg);
    return `![](results/charts/${name}.svg)`;
  });
  return [
    `### ${title}`,
    ...pictures,
    text,
    ...(why ? [why] : []),
    `${again} Raw: [${file}](../test/${file}). ${around(kept)}`,
  ].join('\n\n');
}

rmSync(charts, { recursive: true, force: true });
mkdirSync(charts, { recursive: true });
const intro = readFileSync(join(import.meta.dirname, 'results', 'intro.md'), 'utf8').trim();
const parts = ['# Results', intro, '## Speed', ...speed.map(write), '## Hardness', ...hardness.map(write)];
const page = join(import.meta.dirname, 'results.md');
const options = await resolveConfig(page);
writeFileSync(page, await format(`${parts.join('\n\n')}\n`, { ...options, filepath: page }));
