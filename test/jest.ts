// Runs jest: the one place for its flags.
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

/** Which tests to run. */
export interface Selection {
  /** Parts of paths; all tests without one. */
  patterns: readonly string[];
  /** Folders with this name, which `npm test` leaves out. */
  folder?: string;
  /** Further options of jest. */
  options?: readonly string[];
}

const jest = join(ROOT, 'node_modules', 'jest', 'bin', 'jest.js');
const nodeFlags = [
  '--experimental-vm-modules',
  '--disable-warning=ExperimentalWarning',
  '--disable-warning=TimeoutNegativeWarning',
];

/** Tests of these folders start stacks and containers in their hooks. */
const slowTestTimeout = '--testTimeout=180000';

/** Whoever asks for a part waits for its first result. */
const shortestFirst = `--testSequencer=${join(ROOT, 'test', 'support', 'shortest-first.mjs')}`;

function argumentsOf({ patterns, folder, options = [] }: Selection): string[] {
  if (folder === undefined) return [...(patterns.length > 0 ? [shortestFirst] : []), ...options, ...patterns];
  const ignored = ['/node_modules/', '/\\.local/'].map((path) => `--testPathIgnorePatterns=${path}`);
  const parts = patterns.length > 0 ? patterns : [''];
  return [
    slowTestTimeout,
    ...options,
    ...ignored,
    ...parts.map((part) => `--testPathPatterns=/${folder}/.*${part}`),
  ];
}

const noTest = ({ patterns }: Selection): string => `No test has ${patterns.join(' or ')} in its path.`;

/**
 * Returns the test files of a selection.
 * @throws Problem when there are none, so that a typing error need not wait for containers
 */
export async function filesOf(selection: Selection, signal: AbortSignal): Promise<string[]> {
  const list = [jest, '--listTests', ...argumentsOf(selection)];
  const { output } = await runCommand(process.execPath, list, { signal, cwd: ROOT });
  const files = output.split('\n').filter((line) => line.endsWith('.test.ts'));
  if (files.length === 0) throw new Problem(noTest(selection));
  return files;
}

/**
 * Runs tests against the stack that `stackFile` describes; a file that cannot be run counts as one failed test, and so
 * does a skipped test.
 * @param report where jest puts its report
 */
export async function runJest(
  selection: Selection,
  stackFile: string,
  report: string,
  signal: AbortSignal,
): Promise<Counts> {
  signal.throwIfAborted();
  const options = ['--json', `--outputFile=${report}`, '--passWithNoTests'];
  const child = spawn(process.execPath, [...nodeFlags, jest, ...options, ...argumentsOf(selection)], {
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
  const { numPassedTests: passed = 0, numFailedTests = 0, numPendingTests = 0 } = result;
  const failed = numFailedTests + numPendingTests + (result['numRuntimeErrorTestSuites'] ?? 0);
  if (passed + failed === 0) throw new Problem(noTest(selection));
  return { passed, failed };
}
