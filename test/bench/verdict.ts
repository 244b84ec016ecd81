import type { Verdict } from '../results/section.ts';
import { benchmarks } from '../results/benchmarks.ts';
import { dated, writeResult } from '../support/results.ts';

/** Stores a benchmark's results and prints its section of the page. The process exits with 1 if a goal was missed. */
export function conclude(
  name: string,
  verdicts: readonly Verdict[],
  found: object,
  versions?: Record<string, string>,
): void {
  writeResult('bench', name, found, versions);
  const section = benchmarks.find(({ file }) => file === `bench/results/${name}.json`)!;
  console.log(`\n${section.title}\n\n${section.render(dated(found, versions)).join('\n\n')}`);
  if (verdicts.some(({ isHeld }) => !isHeld)) process.exitCode = 1;
}
