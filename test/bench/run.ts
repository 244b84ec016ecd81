// `npm run bench [-- names]`: the named benches, or all, one after the other, against a stack of their own whose rate
// limits are off, but for those that bring up what they need.
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DOWNLOADS, environmentWith, ROOT } from '../../deploy/local/config.ts';
import { Problem } from '../../deploy/local/problem.ts';
import { untilStopped } from '../../deploy/local/until-stopped.ts';
import { startOwnStack } from '../support/own-stack.ts';
import { noteLoad } from '../support/results.ts';
import { isWell } from '../support/stack.ts';
import { until } from '../support/wait.ts';

/** They ask /proc what CPU others have taken. */
const linuxOnly = ['tracing', 'capacity', 'overload', 'curves', 'gateway', 'cache', 'events'];

/** They bring up what they need by themselves: an idle stack beside them would be in their figures. */
const withoutStack = ['gateway/main.ts', 'cache/main.ts', 'events/main.ts'];

const benchFiles: Record<string, string> = {
  devices: 'devices-letters.ts',
  letters: 'devices-letters.ts',
  upload: 'upload.ts',
  'login-timing': 'login-timing.ts',
  revocation: 'revocation-delay.ts',
  tracing: 'tracing.ts',
  capacity: 'capacity.ts',
  overload: 'overload/main.ts',
  curves: 'curves/main.ts',
  memory: 'memory/main.ts',
  gateway: 'gateway/main.ts',
  cache: 'cache/main.ts',
  events: 'events/main.ts',
};

/** @throws Problem when there is no such bench, or not on this system */
function filesOf(names: readonly string[]): Set<string> {
  const unknown = names.find((name) => !Object.hasOwn(benchFiles, name));
  if (unknown !== undefined)
    throw new Problem(`There is no bench ${unknown}; there are ${Object.keys(benchFiles).join(', ')}.`);
  const elsewhere = names.filter((name) => process.platform !== 'linux' && linuxOnly.includes(name));
  if (elsewhere.length > 0) throw new Problem(`On Linux alone: ${elsewhere.join(', ')}.`);
  return new Set(names.map((name) => benchFiles[name]!));
}

/** Runs a bench in a process of its own, and to its end; resolves with its exit code. */
async function runBench(file: string, signal: AbortSignal): Promise<number> {
  signal.throwIfAborted();
  const child = spawn(process.execPath, [...process.execArgv, join(import.meta.dirname, file)], {
    cwd: ROOT,
    // STACK_FILE is set by the stack.
    env: environmentWith({}),
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const kill = (): void => void child.kill();
  signal.addEventListener('abort', kill);
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  signal.removeEventListener('abort', kill);
  signal.throwIfAborted();
  return code ?? 1;
}

/** Runs benches against a stack of their own; resolves with how many failed. */
async function runOnStack(files: readonly string[], signal: AbortSignal): Promise<number> {
  process.env['RATE_LIMIT_SCALE'] = '0';
  const own = await startOwnStack(signal);
  try {
    // A new consumer clears everything once when it joins: not under the first bench.
    await until('all is well', isWell, 120_000);
    return await runAll(files, signal);
  } finally {
    await own.stop();
  }
}

async function runAll(files: readonly string[], signal: AbortSignal): Promise<number> {
  let failed = 0;
  for (const file of files) {
    console.log('');
    failed += (await runBench(file, signal)) === 0 ? 0 : 1;
  }
  return failed;
}

noteLoad();
await untilStopped(async (signal) => {
  const names = process.argv.slice(2);
  const files = [...filesOf(names.length > 0 ? names : Object.keys(benchFiles))];
  mkdirSync(DOWNLOADS, { recursive: true });
  const onStack = files.filter((file) => !withoutStack.includes(file));
  let failed = onStack.length > 0 ? await runOnStack(onStack, signal) : 0;
  failed += await runAll(
    files.filter((file) => withoutStack.includes(file)),
    signal,
  );
  return failed === 0 ? 0 : 1;
}, 1);
