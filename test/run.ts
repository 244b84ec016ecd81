// `npm test [-- pattern]`: types, lint, format and every test, against a stack of its own beside whatever else runs.
// `npm run proof [-- --quick] [-- pattern]`: what takes minutes to an hour, in folders with the name proof, in the same way;
// quick: most of them, and so much of each as shows within ten minutes that it still works.
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DOWNLOADS } from '../deploy/local/config.ts';
import { freeRow } from '../deploy/local/ports.ts';
import { printProblem, Stopped } from '../deploy/local/problem.ts';
import { SERVICES } from '../deploy/local/services.ts';
import { startStack } from '../deploy/local/stack.ts';
import { isAbandoned } from '../deploy/local/state.ts';
import { createTerminal, type Terminal } from '../deploy/local/terminal.ts';
import { untilStopped } from '../deploy/local/until-stopped.ts';
import { runChecks } from './checks.ts';
import { type Counts, onlyIn, refuseUnknown, runJest } from './jest.ts';
import { noteLoad } from './support/results.ts';
import { isWell } from './support/stack.ts';
import { until } from './support/wait.ts';

const FOLDER = 'test-';

/** Proofs that wait for minutes whatever there is to do, or ask the registry: not for `--quick` unless they are named. */
const SLOW = ['faults-table', 'slow-clients', 'alerts', 'uploads', 'audit'];

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

/** What cannot be removed, as something is still mounted there, is no reason not to test. */
function remove(folder: string, terminal: Terminal): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch (error) {
    terminal.line(`${folder} stays: ${(error as Error).message}`);
  }
}

/** Folders of earlier runs: failed ones are kept until the next run, for their logs. */
async function tidyUp(terminal: Terminal): Promise<void> {
  if (!existsSync(DOWNLOADS)) return;
  const folders = readdirSync(DOWNLOADS).filter((name) => name.startsWith(FOLDER));
  for (const folder of folders.map((name) => join(DOWNLOADS, name)))
    if (await isAbandoned(folder, 5_000)) remove(folder, terminal);
}

noteLoad();
await untilStopped(async (signal) => {
  const terminal = createTerminal();
  const isProof = process.argv[2] === '--proof';
  const isQuick = process.argv[3] === '--quick';
  if (isProof && isQuick) process.env['PROOF_QUICK'] = '1';
  const patterns = process.argv.slice(isProof ? (isQuick ? 4 : 3) : 2);
  const left =
    isQuick && patterns.length === 0 ? SLOW.map((name) => `--testPathIgnorePatterns=/proof/${name}`) : [];
  // One after the other: they load the machine, and some say how long others waited.
  const pattern = isProof ? [...onlyIn('proof', patterns), ...left, '--runInBand'] : patterns;
  await refuseUnknown(pattern, signal);
  await tidyUp(terminal);
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
