// `npm run bench [-- names]`: runs the named benches, or all, in sequence. They run against a separate stack without rate
// limits, except benches that start their own processes.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DOWNLOADS, environmentWith, ROOT } from '../../deploy/local/config.ts';
import { Problem } from '../../deploy/local/problem.ts';
import { untilStopped } from '../../deploy/local/until-stopped.ts';
import { startOwnStack } from '../support/own-stack.ts';
import { noteLoad } from '../support/results.ts';

const onStack: Record<string, string> = { capacity: 'capacity.ts', overload: 'overload/main.ts' };

/** Benches that start their own processes: an idle stack beside them would change their figures. */
const onTheirOwn: Record<string, string> = {
  gateway: 'gateway/main.ts',
  cache: 'cache/main.ts',
  events: 'events/main.ts',
  changes: 'changes.ts',
  scale: 'scale.ts',
};

const allNames = [...Object.keys(onStack), ...Object.keys(onTheirOwn)];

/** @throws Problem for an unknown bench, and on other systems: benches read the CPU time of processes from /proc */
function check(names: readonly string[]): void {
  const unknown = names.find((name) => !allNames.includes(name));
  if (unknown !== undefined)
    throw new Problem(`Unknown bench ${unknown}. Available benches: ${allNames.join(', ')}.`);
  if (process.platform !== 'linux') throw new Problem('The benches run on Linux only.');
}

/** Runs benches in sequence, each in its own process. Resolves with the number of failed benches. */
async function runAll(files: readonly string[], signal: AbortSignal): Promise<number> {
  let failed = 0;
  for (const file of files) {
    console.log('');
    // The load generators and the other gateways inherit the flag that the platform's processes have.
    const flags = [...process.execArgv, '--v8-pool-size=1'];
    const child = spawn(process.execPath, [...flags, join(import.meta.dirname, file)], {
      cwd: ROOT,
      // startOwnStack has set STACK_FILE.
      env: environmentWith({}),
      stdio: ['ignore', 'inherit', 'inherit'],
      signal,
    });
    const [code] = (await once(child, 'close')) as [number | null];
    if (code !== 0) failed += 1;
  }
  return failed;
}

/** Runs benches against a separate stack. Resolves with the number of failed benches. */
async function runOnStack(files: readonly string[], signal: AbortSignal): Promise<number> {
  if (files.length === 0) return 0;
  process.env['RATE_LIMIT_SCALE'] = '0';
  const own = await startOwnStack(signal);
  try {
    return await runAll(files, signal);
  } finally {
    await own.stop();
  }
}

noteLoad();
await untilStopped(async (signal) => {
  const given = process.argv.slice(2);
  const names = given.length > 0 ? given : allNames;
  check(names);
  mkdirSync(DOWNLOADS, { recursive: true });
  const filesIn = (benches: Record<string, string>) => names.flatMap((name) => benches[name] ?? []);
  const failed = (await runOnStack(filesIn(onStack), signal)) + (await runAll(filesIn(onTheirOwn), signal));
  return failed === 0 ? 0 : 1;
}, 1);
