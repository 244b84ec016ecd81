// npm test [-- --only] [pattern ...]             the checks of checks.ts and every test
// npm run proof [-- --quick] [pattern ...]       the tests in folders named proof, which take minutes to an hour
//
// The tests run against a stack of their own, on free ports. Checks, stack and jest start together: a test that asks for
// the stack's addresses waits for them. --only leaves out the checks; --quick leaves out the longest proofs and sets
// PROOF_QUICK, which makes the others small.
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DOWNLOADS } from '../deploy/local/config.ts';
import { printProblem, Problem, Stopped } from '../deploy/local/problem.ts';
import { installedRedis } from '../deploy/local/redis.ts';
import { type Identity, isRunning } from '../deploy/local/identity.ts';
import { readJson, stopRecorded } from '../deploy/local/state.ts';
import { createTerminal, type Terminal } from '../deploy/local/terminal.ts';
import { untilStopped } from '../deploy/local/until-stopped.ts';
import { runChecks } from './checks.ts';
import { type Counts, findTests, runJest, type Selection } from './jest.ts';
import { startTestStack } from './support/own-stack.ts';
import { noteLoad } from './support/results.ts';

const folderPrefix = 'test-';
const abandonedAfterMs = 5_000;

/** Proofs that always take minutes, or that query the package registry. */
const slowProofs = ['faults-table', 'slow-clients', 'alerts', 'uploads', 'audit'];

/** The runner's own options; jest gets all others. */
const ownOptions = ['--proof', '--quick', '--only'];

function readArguments(args: string[]): { selection: Selection; withChecks: boolean } {
  const has = (option: string): boolean => args.includes(option);
  // A part of a test's title follows `-t`.
  const isOption = (arg: string, index: number): boolean => arg.startsWith('-') || args[index - 1] === '-t';
  const options = args.filter((arg, index) => isOption(arg, index) && !ownOptions.includes(arg));
  const patterns = args.filter((arg, index) => !isOption(arg, index));
  // Proofs measure, and may have stored a result that is not rendered yet.
  const withChecks = !has('--only') && !has('--proof');
  if (!has('--proof')) return { selection: { patterns, options }, withChecks };
  if (has('--quick')) process.env['PROOF_QUICK'] = '1';
  const left = has('--quick') && patterns.length === 0 ? slowProofs : [];
  const ignored = left.map((name) => `--testPathIgnorePatterns=/proof/${name}`);
  // Proofs run in sequence, because they load the machine and some measure times.
  const inTurn = [...options, ...ignored, '--runInBand'];
  return { selection: { patterns, folder: 'proof', options: inTurn }, withChecks };
}

/** Runs jest beside a stack. Keeps the stack's folder after a failed test. */
async function runTests(selection: Selection, terminal: Terminal, signal: AbortSignal): Promise<Counts> {
  const state = join(DOWNLOADS, `${folderPrefix}${process.pid}`);
  const ending = new AbortController();
  const either = AbortSignal.any([signal, ending.signal]);
  const starting = startTestStack(state, either, terminal);
  // A stack that fails or ends also stops jest.
  const broken = starting.then(async (running) => Promise.reject(await running.ended));
  broken.catch((reason: unknown) => ending.abort(reason));
  const report = join(state, 'report.json');
  // Test files that use the stack wait for it during their import: see support/stack.ts.
  process.env['STACK_IS_STARTING'] = '1';
  const tests = runJest(selection, join(state, 'stack.json'), report, either);
  await Promise.allSettled([tests]);
  ending.abort(new Stopped());
  await starting.then((running) => running.stop()).catch(() => undefined);
  const counts = await tests;
  if (counts.failed > 0) terminal.line(`The stack's logs: ${join(state, 'logs')}`);
  else rmSync(state, { recursive: true, force: true });
  return counts;
}

/** Deletes the folder unless something is still mounted in it. */
function remove(folder: string, terminal: Terminal): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch (error) {
    terminal.line(`${folder} stays: ${(error as Error).message}`);
  }
}

/** Deletes the folders of earlier runs: a failed run keeps its logs until the next one. */
async function removeOldFolders(terminal: Terminal): Promise<void> {
  if (!existsSync(DOWNLOADS)) return;
  const folders = readdirSync(DOWNLOADS).filter((name) => name.startsWith(folderPrefix));
  for (const folder of folders.map((name) => join(DOWNLOADS, name))) {
    const launcher = readJson<Identity>(join(folder, 'launcher.json'));
    if (launcher && isRunning(launcher)) continue;
    await stopRecorded(join(folder, 'run'), abandonedAfterMs);
    remove(folder, terminal);
  }
}

noteLoad();
await untilStopped(async (signal) => {
  const terminal = createTerminal();
  const { selection, withChecks } = readArguments(process.argv.slice(2));
  if (selection.patterns.length > 0) await findTests(selection, signal);
  await removeOldFolders(terminal);
  // Tests start their own servers, some before the stack is ready.
  if (!(await installedRedis(signal)))
    throw new Problem('The tests need redis-server or valkey-server 7 or newer on your PATH.');
  const works = [
    withChecks ? runChecks(terminal, signal) : { passed: 0, failed: 0 },
    runTests(selection, terminal, signal).catch((error: unknown) => {
      if (signal.aborted) throw error;
      printProblem(error);
      return { passed: 0, failed: 1 };
    }),
  ];
  // After Ctrl-C the checks end first, while the stack still stops.
  await Promise.allSettled(works);
  // jest's workers ended without stopping what their tests had started.
  if (signal.aborted) await removeOldFolders(terminal);
  const results = await Promise.all(works);
  const passed = results.reduce((sum, counts) => sum + counts.passed, 0);
  const failed = results.reduce((sum, counts) => sum + counts.failed, 0);
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}, 1);
