import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { ROOT } from '../../deploy/local/config.ts';
import { hardness } from './hardness.ts';
import { type Kept, type Section, told } from './section.ts';
import { speed } from './speed.ts';

export const pageFile = join(ROOT, 'docs', 'results.md');
export const chartsFolder = join(import.meta.dirname, 'charts');

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

/** docs/results.md and its charts, by name, from what the benches and proofs have kept. */
export async function renderPage(): Promise<{ page: string; charts: Record<string, string> }> {
  const charts: Record<string, string> = {};
  const sections = (list: readonly Section[]) => list.map((section) => write(section, charts));
  const intro = readFileSync(join(import.meta.dirname, 'intro.md'), 'utf8').trim();
  const parts = ['# Results', intro, '## Speed', ...sections(speed), '## Hardness', ...sections(hardness)];
  const options = await resolveConfig(pageFile);
  const page = await format(`${parts.join('\n\n')}\n`, { ...options, filepath: pageFile });
  return { page, charts };
}
