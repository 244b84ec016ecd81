import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';
import { writeResult } from '../support/results.ts';
import { table } from '../support/table.ts';
import type { Dependency } from './dependencies.ts';
import type { Answer, Group } from './groups.ts';

/** An answer as `textOf` writes it, and the limit that it kept, in seconds. */
export type Seen = readonly [text: string, within: number];

/** Each group's answers during one fault: the first, and a later one where it differs. */
export interface Observation {
  fault: string;
  answers: Record<string, readonly Seen[]>;
  /** From its end until all was as before, in ms, and the limit that this kept, in seconds. */
  backMs: number;
  backWithin: number;
}

export interface Results {
  dependencies: Record<string, Observation[]>;
}

const resultsFile = join(ROOT, 'test/faults/results/faults.json');
export const docFile = join(ROOT, 'docs/faults.md');

/** In seconds. */
const limits = [1, 4, 7, 12, 17, 30, 80];
const backLimits = [10, 30, 60, 120];

/** On a busy machine a limit counts as kept for twice its time, and as worth saying down to a tenth of it. */
export function within(ms: number, written: number | undefined, among = limits): number {
  const isFair =
    written !== undefined && ms <= written * 2_000 && (ms > written * 100 || written === among[0]);
  return isFair ? written : (among.find((seconds) => ms <= seconds * 1_000) ?? Infinity);
}
export const backWithin = (ms: number, written: number | undefined) => within(ms, written, backLimits);

export function readResults(): Results['dependencies'] {
  if (!existsSync(resultsFile)) return {};
  return (JSON.parse(readFileSync(resultsFile, 'utf8')) as Results).dependencies;
}

/** Writes the observations of this run, and those of earlier runs for all other dependencies. */
export function writeResults(dependencies: Results['dependencies']): void {
  const about =
    'What clients got while a dependency failed. answers: per group of endpoints the first answer after the fault began, and a later one where it differs, each with the limit in seconds that docs/faults.md states; backMs: from the end of the fault until all was as before.';
  writeResult('faults', 'faults', { about, dependencies });
}

/** What was answered, without its time. */
export function textOf({ status, code, cache }: Pick<Answer, 'status' | 'code' | 'cache'>): string {
  return [status, code, cache].filter((part) => part !== undefined).join(' ');
}

const time = (seconds: number) => (seconds === 1 ? 'at once' : `≤ ${seconds} s`);

function cell({ well }: Group, seen: readonly Seen[]): string {
  const tell = ([text, within]: Seen) => {
    if (text === well) return within === 1 ? 'ok' : `ok, ${time(within)}`;
    const [status, ...words] = text.split(' ');
    return `${[status, ...words.map((word) => `\`${word}\``)].join(' ')}, ${time(within)}`;
  };
  const [first, later] = seen;
  if (!later) return tell(first!);
  return first![0] === later[0]
    ? `${tell(first!)}; then ${time(later[1])}`
    : `${tell(first!)}; then ${tell(later)}`;
}

function section({ title, leftOut }: Dependency, groups: readonly Group[], seen: Observation[]): string {
  const head = ['', ...seen.map(({ fault }) => fault)];
  const rows = groups.map((group) => [
    group.name,
    ...seen.map(({ answers }) => cell(group, answers[group.name]!)),
  ]);
  const back = ['back to normal', ...seen.map(({ backWithin }) => time(backWithin))];
  const notes = leftOut ? `\n\nLeft out (–): ${leftOut}` : '';
  return `## ${title}\n\n${table([head, ...rows, back])}${notes}`;
}

/** docs/faults.md, of what has been seen. */
export function render(
  dependencies: readonly Dependency[],
  groups: readonly Group[],
  results: Results['dependencies'],
): string {
  const intro = readFileSync(join(import.meta.dirname, 'intro.md'), 'utf8').trim();
  const sections = dependencies
    .filter(({ id }) => results[id])
    .map((dependency) => section(dependency, groups, results[dependency.id]!));
  return `${intro}\n\n${sections.join('\n\n')}\n`;
}
