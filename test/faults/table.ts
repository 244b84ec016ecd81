import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';
import { writeResult } from '../support/results.ts';
import { table } from '../support/table.ts';
import type { Dependency } from './dependencies.ts';
import type { Answer, Group } from './groups.ts';

/** A response as `textOf` writes it, and its time limit in seconds. */
export type Seen = readonly [text: string, within: number];

/** Each group's responses during one fault: the first, and a later one if it differs. */
export interface Observation {
  fault: string;
  answers: Record<string, readonly Seen[]>;
  /** Duration of the recovery in ms, and its time limit in seconds. */
  backMs: number;
  backWithin: number;
}

type Results = Record<string, Observation[]>;

const resultsFile = join(ROOT, 'test/faults/results/faults.json');
export const docFile = join(ROOT, 'docs/operations/failure-modes.md');

const limits = [1, 4, 7, 12, 17, 30, 80];
const backLimits = [10, 30, 60, 120];

/** Returns the least of `among` that is not exceeded, in seconds. */
const limitOf = (ms: number, among: readonly number[]): number =>
  among.find((seconds) => ms <= seconds * 1_000) ?? Infinity;

/** The measurements of one run; times are in ms. */
export interface Measured {
  /** Each group's first and later response. */
  answers: Record<string, readonly (readonly [text: string, ms: number])[]>;
  backMs: number;
}

/** While replies are late, requests compete for connections: chance decides which of its responses each one gets. */
const competing = new Set(['slow: 5 s', 'no response']);

/**
 * Returns what the page says after a run. It changes where a response is not written, or took longer than twice its
 * limit (a busy machine). A process may notice a fault before its first request, so the first response can be a later one.
 */
export function updated(fault: string, { answers, backMs }: Measured, written?: Observation): Observation {
  const rows = Object.entries(answers).map(([name, seen]) => {
    const known = written?.answers[name] ?? [];
    const isWritten = seen.every(([text, ms], index) => {
      const isAny = index === 0 || (competing.has(fault) && name !== 'health');
      const possible = isAny ? known : known.slice(-1);
      const longest = Math.max(...possible.map(([, within]) => within));
      return possible.some((one) => one[0] === text) && ms <= longest * 2_000;
    });
    if (isWritten) return [name, known] as const;
    const [one, two] = seen.map(([text, ms]): Seen => [text, limitOf(ms, limits)]);
    return [name, JSON.stringify(one) === JSON.stringify(two) ? [one!] : [one!, two!]] as const;
  });
  const known = written?.backWithin ?? 0;
  const backWithin = backMs <= known * 2_000 ? known : limitOf(backMs, backLimits);
  return { fault, answers: Object.fromEntries(rows), backMs, backWithin };
}

export function readResults(): Results {
  if (!existsSync(resultsFile)) return {};
  return (JSON.parse(readFileSync(resultsFile, 'utf8')) as { dependencies: Results }).dependencies;
}

/** Writes the observations of this run and keeps earlier ones of other dependencies. */
export function writeResults(dependencies: Results): void {
  const about =
    'What clients got while a dependency failed. answers: per group of endpoints the first answer after the fault began, and a later one where it differs, each with the limit in seconds that docs/operations/failure-modes.md states; backMs: from the end of the fault until all was as before.';
  writeResult('faults', 'faults', { about, dependencies });
}

export function textOf({ status, code, cache }: Pick<Answer, 'status' | 'code' | 'cache'>): string {
  return [status, code, cache].filter((part) => part !== undefined).join(' ');
}

const time = (seconds: number) => (seconds === 1 ? '< 1 s' : `≤ ${seconds} s`);

function cell({ healthy }: Group, seen: readonly Seen[]): string {
  const describe = ([text, within]: Seen) => {
    if (text === healthy) return within === 1 ? 'ok' : `ok in ${time(within)}`;
    const [status, ...words] = text.split(' ');
    return `${[status, ...words.map((word) => `\`${word}\``)].join(' ')} in ${time(within)}`;
  };
  const [first, later] = seen;
  if (!later) return describe(first!);
  return first![0] === later[0]
    ? `${describe(first!)}, then ${time(later[1])}`
    : `${describe(first!)}, then ${describe(later)}`;
}

/** Joins the titles of otherwise equal rows. */
function merged(lines: readonly (readonly string[])[]): string[][] {
  const byCells = new Map<string, string[][]>();
  for (const line of lines) {
    const key = JSON.stringify(line.slice(1));
    byCells.set(key, [...(byCells.get(key) ?? []), [...line]]);
  }
  return [...byCells.values()].map((same) => [same.map(([head]) => head).join(', '), ...same[0]!.slice(1)]);
}

const transposed = (lines: readonly (readonly string[])[]): string[][] =>
  lines[0]!.map((_, column) => lines.map((line) => line[column]!));

/** Writes `content, cached` as `content (cached)`, because names are joined by commas. */
const shownName = ({ name }: Group): string => name.replace(/^(\w+), (.+)$/, '$1 ($2)');

/** Returns the table of responses that differ from `ok`, with equal rows and columns joined. */
function affectedTable(groups: readonly Group[], seen: readonly Observation[]): string {
  const lines = groups
    .map((group) => [shownName(group), ...seen.map(({ answers }) => cell(group, answers[group.name]!))])
    .filter(([, ...cells]) => cells.some((text) => text !== 'ok'));
  const faults = seen.map(({ fault }) => fault);
  if (lines.length === 0) return `No request is affected by any of the faults: ${faults.join(', ')}.`;
  const [heads, ...columns] = transposed([['requests', ...faults], ...merged(lines)]);
  const joined = merged(columns);
  if (joined.length > 1) return table(transposed([heads!, ...joined]));
  return `All faults have the same effect: ${faults.join(', ')}.\n\n${table(transposed([heads!, ['response', ...joined[0]!.slice(1)]]))}`;
}

function section({ title, leftOut }: Dependency, groups: readonly Group[], seen: Observation[]): string {
  const recoveries = merged(seen.map(({ fault, backWithin }) => [fault, time(backWithin)]));
  const recovery =
    recoveries.length === 1
      ? recoveries[0]![1]
      : recoveries.map(([faults, within]) => `${within} (${faults})`).join('; ');
  const parts = [`## ${title}`, affectedTable(groups, seen), `Recovery: ${recovery}.`];
  return [...parts, ...(leftOut ? [`Not tested: ${leftOut}`] : [])].join('\n\n');
}

export function render(dependencies: readonly Dependency[], groups: readonly Group[], results: Results) {
  const intro = readFileSync(join(import.meta.dirname, 'intro.txt'), 'utf8').trim();
  const sections = dependencies
    .filter(({ id }) => results[id])
    .map((dependency) => section(dependency, groups, results[dependency.id]!));
  return `${intro}\n\n${sections.join('\n\n')}\n`;
}
