import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { environmentWith, ROOT } from '../deploy/local/config.ts';
import { Problem } from '../deploy/local/problem.ts';
import { runCommand } from '../deploy/local/run-command.ts';

export interface Counts {
  passed: number;
  failed: number;
}

const JEST = join(ROOT, 'node_modules', 'jest', 'bin', 'jest.js');

/** For what `npm test` leaves out: the files of folders with that name, those whose path has one of the patterns in it. */
export function onlyIn(folder: string, patterns: string[]): string[] {
  const ignored = ['/node_modules/', '/\\.local/'].map((path) => `--testPathIgnorePatterns=${path}`);
  const parts = patterns.length > 0 ? patterns : [''];
  return [...ignored, ...parts.map((part) => `--testPathPatterns=/${folder}/.*${part}`)];
}

/** Patterns as they were typed: jest reads those of `onlyIn` as a regular expression, and what is left out is none. */
const shown = (patterns: string[]): string =>
  patterns
    .filter((pattern) => !/^--(?!testPathPatterns=)/.test(pattern))
    .map((pattern) => pattern.replace(/^--testPathPatterns=/, ''))
    .join(' or ');

/** The test files that match. @throws Problem when there are none: a typing error need not wait for a stack */
export async function filesOf(pattern: string[], signal: AbortSignal): Promise<string[]> {
  const list = [JEST, '--listTests', ...pattern];
  const { output } = await runCommand(process.execPath, list, { signal, cwd: ROOT });
  const files = output.split('\n').filter((line) => line.endsWith('.test.ts'));
  if (files.length === 0) throw new Problem(`No test has ${shown(pattern)} in its path.`);
  return files;
}

/** @throws Problem when no test file matches */
export async function refuseUnknown(pattern: string[], signal: AbortSignal): Promise<void> {
  if (pattern.length > 0) await filesOf(pattern, signal);
}

/** Runs jest against the stack; a file that cannot be run counts as one failed test. `report`: where to put its report. */
export async function runJest(
  pattern: string[],
  stackFile: string,
  report: string,
  signal: AbortSignal,
): Promise<Counts> {
  signal.throwIfAborted();
  const flags = [
    '--experimental-vm-modules',
    '--disable-warning=ExperimentalWarning',
    '--disable-warning=TimeoutNegativeWarning',
  ];
  const options = ['--json', `--outputFile=${report}`, '--passWithNoTests'];
  const child = spawn(process.execPath, [...flags, JEST, ...options, ...pattern], {
    cwd: ROOT,
    env: environmentWith({ STACK_FILE: stackFile }),
    // jest's report for people is on stderr; with --json its stdout is the report again.
    stdio: ['ignore', 'ignore', 'inherit'],
    detached: true,
  });
  const kill = (): void => void (child.pid && process.kill(-child.pid, 'SIGTERM'));
  signal.addEventListener('abort', kill);
  await new Promise((resolve) => child.once('close', resolve));
  signal.removeEventListener('abort', kill);
  signal.throwIfAborted();
  if (!existsSync(report)) return { passed: 0, failed: 1 };
  const result = JSON.parse(readFileSync(report, 'utf8')) as Record<string, number>;
  const {
    numPassedTests = 0,
    numFailedTests = 0,
    numRuntimeErrorTestSuites = 0,
    numPendingTests = 0,
  } = result;
  if (numPassedTests + numFailedTests + numRuntimeErrorTestSuites === 0) throw new Problem('No test ran.');
  // A skipped test has not passed.
  return { passed: numPassedTests, failed: numFailedTests + numRuntimeErrorTestSuites + numPendingTests };
}
