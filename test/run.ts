// `npm test [-- pattern]`: types, lint, format and every test, against a stack of its own beside whatever else runs.
// `npm run proof [-- pattern]`: what takes minutes, in test/proof, in the same way.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DOWNLOADS, environmentWith, ROOT } from '../deploy/local/config.ts';
import { freeRow } from '../deploy/local/ports.ts';
import { Problem, printProblem, Stopped } from '../deploy/local/problem.ts';
import { runCommand } from '../deploy/local/run-command.ts';
import { SERVICES } from '../deploy/local/services.ts';
import { startStack } from '../deploy/local/stack.ts';
import { isAbandoned } from '../deploy/local/state.ts';
import { createTerminal, type Terminal } from '../deploy/local/terminal.ts';
import { untilStopped } from '../deploy/local/until-stopped.ts';
import { runChecks } from './checks.ts';
import { isWell } from './support/stack.ts';
import { until } from './support/wait.ts';

interface Counts {
  passed: number;
  failed: number;
}

const FOLDER = 'test-';

const JEST = join(ROOT, 'node_modules', 'jest', 'bin', 'jest.js');

/** What jest is told to run. */
function selection(isProof: boolean, pattern: string[]): string[] {
  if (!isProof) return pattern;
  const ignored = ['/node_modules/', '/\\.local/'].map((path) => `--testPathIgnorePatterns=${path}`);
  const parts = pattern.length > 0 ? pattern : [''];
  return [...ignored, ...parts.map((part) => `--testPathPatterns=/test/proof/.*${part}`)];
}

/** @throws Problem when no test file matches: a typing error need not wait for a stack */
async function refuseUnknown(pattern: string[], signal: AbortSignal): Promise<void> {
  if (pattern.length === 0) return;
  const list = [JEST, '--listTests', ...pattern];
  const { output } = await runCommand(process.execPath, list, { signal, cwd: ROOT });
  if (!/\.test\.ts$/m.test(output)) throw new Problem(`No test has ${pattern.join(' or ')} in its path.`);
}

/** Runs jest against the stack; a file that cannot be run counts as one failed test. */
async function runJest(
  pattern: string[],
  stackFile: string,
  report: string,
  signal: AbortSignal,
): Promise<Counts> {
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

async function testStack(pattern: string[], terminal: Terminal, signal: AbortSignal): Promise<Counts> {
  const state = join(DOWNLOADS, `${FOLDER}${process.pid}`);
  const running = await startStack({
    state,
    gatewayPort: await freeRow(SERVICES.length),
    usualPorts: false,
    // Servers of the developer's own hold other data: tests clear and fill what they use.
    external: {},
    trustedProxies: '127.0.0.1/32',
    needsKafka: true,
    showLogs: false,
    terminal,
    signal,
  });
  try {
    running.publish();
    const ended = new AbortController();
    void running.ended.then((reason) => ended.abort(reason));
    process.env['STACK_FILE'] = join(state, 'stack.json');
    // A new consumer clears everything once when it joins: not under the first tests.
    const broken = running.ended.then((reason) => Promise.reject(reason));
    await Promise.race([until('all is well', isWell, 120_000), broken]);
    const counts = await runJest(
      pattern,
      join(state, 'stack.json'),
      join(state, 'report.json'),
      ended.signal,
    );
    await running.stop();
    if (counts.failed === 0) rmSync(state, { recursive: true, force: true });
    else terminal.line(`The stack's logs: ${join(state, 'logs')}`);
    return counts;
  } finally {
    await running.stop();
  }
}

/** Folders of earlier runs: failed ones are kept until the next run, for their logs. */
async function tidyUp(): Promise<void> {
  if (!existsSync(DOWNLOADS)) return;
  const folders = readdirSync(DOWNLOADS).filter((name) => name.startsWith(FOLDER));
  for (const folder of folders.map((name) => join(DOWNLOADS, name)))
    if (await isAbandoned(folder, 5_000)) rmSync(folder, { recursive: true, force: true });
}

await untilStopped(async (signal) => {
  const terminal = createTerminal();
  const isProof = process.argv[2] === '--proof';
  const pattern = selection(isProof, process.argv.slice(isProof ? 3 : 2));
  await refuseUnknown(pattern, signal);
  await tidyUp();
  const checks = await runChecks(terminal, signal);
  const tests = await testStack(pattern, terminal, signal).catch((error: unknown) => {
    if (error instanceof Stopped) throw error;
    printProblem(error);
    return { passed: 0, failed: 1 };
  });
  const failed = checks.failed + tests.failed;
  console.log(`${checks.passed + tests.passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}, 1);
