import { told } from '../../deploy/render/results/section.ts';
import { benchmarks } from '../../deploy/render/results/benchmarks.ts';
import { dated, writeResult } from '../support/results.ts';

/** Whether a goal is held. */
export interface Verdict {
  isHeld: boolean;
  /** One line for a person. */
  text: string;
}

/**
 * Keeps what a bench found, and prints its section of docs/project/benchmarks.md. The process will exit with 1 when a goal was
 * missed.
 */
export function conclude(
  name: string,
  verdicts: readonly Verdict[],
  found: object,
  versions?: Record<string, string>,
): void {
  writeResult('bench', name, found, versions);
  const section = benchmarks.find(({ file }) => file === `bench/results/${name}.json`)!;
  console.log(`\n${section.title}\n\n${told(section, dated(found, versions)).text}`);
  if (verdicts.some(({ isHeld }) => !isHeld)) process.exitCode = 1;
}
