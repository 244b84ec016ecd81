import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../local/config.ts';
import { hardness } from './hardness.ts';
import { type Kept, type Section, told } from './section.ts';
import { speed } from './speed.ts';

/** What a bench or proof has kept; undefined: it has not been run yet. */
function read(file: string): Kept | undefined {
  const path = join(ROOT, 'test', file);
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Kept) : undefined;
}

/** When and where something was measured, in a line. */
function around({ date, machine }: Kept): string {
  const { cpu, cores, memoryGiB, versions, loadBefore = 0 } = machine;
  const list = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const busy = loadBefore > cores / 2 ? ` The machine had other work before (load ${loadBefore}).` : '';
  return `${date.slice(0, 10)}, ${cores} cores (${cpu}), ${memoryGiB} GiB; ${list.join(', ')}.${busy}`;
}

function write(section: Section, charts: Record<string, string>): string {
  const { title, file, repeat, why } = section;
  const kept = read(file);
  const again = `Repeat: \`${repeat}\`.`;
  if (!kept) return `### ${title}\n\nNot measured yet. ${again}`;
  const { text, charts: drawn } = told(section, kept);
  Object.assign(charts, drawn);
  return [
    `### ${title}`,
    ...Object.keys(drawn).map((name) => `![](results/charts/${name}.svg)`),
    text,
    ...(why && text.includes('**missed**') ? [why] : []),
    `${again} Raw: [${file}](../test/${file}). ${around(kept)}`,
  ].join('\n\n');
}

/** Returns docs/results.md and its charts from what the benches and proofs have kept, as text by path. */
export function renderResults(): Record<string, string> {
  const charts: Record<string, string> = {};
  const sections = (list: readonly Section[]) => list.map((section) => write(section, charts));
  const intro = readFileSync(join(import.meta.dirname, 'intro.md'), 'utf8').trim();
  const parts = ['# Results', intro, '## Speed', ...sections(speed), '## Hardness', ...sections(hardness)];
  const files = Object.entries(charts).map(([name, svg]) => [`docs/results/charts/${name}.svg`, svg]);
  return { 'docs/results.md': `${parts.join('\n\n')}\n`, ...Object.fromEntries(files) };
}
