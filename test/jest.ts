// Runs jest; defines its flags for every runner.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { environmentWith, ROOT } from '../deploy/local/config.ts';
import { Problem } from '../deploy/local/problem.ts';
import { lastLines, runCommand } from '../deploy/local/run-command.ts';

export interface Counts {
  passed: number;
  failed: number;
}
export interface Selection {
  /** Parts of paths; empty for all tests. */
  patterns: readonly string[];
  /** Runs the folders with this name, which `npm test` skips. */
  folder?: string;
  options?: readonly string[];
}

const jest = join(ROOT, 'node_modules', 'jest', 'bin', 'jest.js');
const nodeFlags = [
  // Each test file loads the project's modules again: with the default of 16 MB, V8 moves most of them to the old generation.
  '--max-semi-space-size=64',
  '--v8-pool-size=1',
  '--disable-warning=ExperimentalWarning',
  '--disable-warning=TimeoutNegativeWarning',
];

/** These tests start stacks and containers in their hooks. */
const slowTestTimeout = '--testTimeout=180000';

/** Gives the first result of a selection early. */
const shortestFirst = `--testSequencer=${join(ROOT, 'test', 'support', 'shortest-first.mjs')}`;

function argumentsOf({ patterns, folder, options = [] }: Selection): string[] {
  // jest compares absolute paths: without the root, every test of a clone in a folder `gateway` would match `gateway`.
  const root = ROOT.replaceAll(/[^\w/]/g, '\\$&');
  const chosen = patterns.map((pattern) => `--testPathPatterns=^${root}/.*(?:${pattern})`);
  if (folder === undefined) return [...(patterns.length > 0 ? [shortestFirst] : []), ...options, ...chosen];
  const ignored = ['/node_modules/', '/\\.local/'].map((path) => `--testPathIgnorePatterns=${path}`);
  const match = `--testMatch=<rootDir>/**/${folder}/**/*.test.ts`;
  return [slowTestTimeout, match, ...options, ...ignored, ...chosen];
}

/**
 * Returns the test files of a selection.
 * @throws Problem for a pattern that no file matches, so that a typing error is reported before anything starts
 */
export async function findTests(selection: Selection, signal: AbortSignal): Promise<string[]> {
  const list = [jest, '--listTests', ...argumentsOf(selection)];
  const { code, output } = await runCommand(process.execPath, list, { signal, cwd: ROOT });
  if (code !== 0) throw new Problem('jest cannot list the tests.', lastLines(output));
  const files = output.split('\n').filter((line) => line.endsWith('.test.ts'));
  const paths = files.map((file) => relative(ROOT, file));
  for (const pattern of selection.patterns)
    if (!paths.some((path) => new RegExp(pattern, 'i').test(path)))
      throw new Problem(`No test has ${pattern} in its path.`);
  return files;
}

/**
 * Runs tests against the stack that `stackFile` describes. A file that cannot run counts as one failed test; so does a
 * skipped test, unless `-t` left it out.
 * @param report where jest writes its report
 */
export async function runJest(selection: Selection, stackFile: string, report: string, signal: AbortSignal) {
  signal.throwIfAborted();
  const options = ['--json', `--outputFile=${report}`];
  const child = spawn(process.execPath, [...nodeFlags, jest, ...options, ...argumentsOf(selection)], {
    cwd: ROOT,
    env: environmentWith({ STACK_FILE: stackFile }),
    // jest prints its progress to stderr; with --json its stdout repeats the report.
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
  const isPart = selection.options?.some((option) => /^(-t|--testNamePattern)/.test(option));
  const skipped = isPart && passed + numFailedTests > 0 ? 0 : numPendingTests;
  const failed = numFailedTests + skipped + (result['numRuntimeErrorTestSuites'] ?? 0);
  return { passed, failed };
}
