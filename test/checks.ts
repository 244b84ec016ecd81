import { join } from 'node:path';
import { ROOT } from '../deploy/local/config.ts';
import { runCommand } from '../deploy/local/run-command.ts';
import type { Terminal } from '../deploy/local/terminal.ts';
import { lockProblems, readPackages } from './lock-file.ts';

/** Throws what it found. */
type Check = (signal: AbortSignal) => Promise<void>;

/** @param command in node_modules/.bin */
const program =
  (command: string, ...args: string[]): Check =>
  async (signal) => {
    const file = join(ROOT, 'node_modules', '.bin', command);
    const { code, output } = await runCommand(file, args, { signal, cwd: ROOT });
    if (code !== 0) throw new Error(output);
  };

async function checkLockFile(): Promise<void> {
  const problems = lockProblems(...readPackages(ROOT));
  if (problems.length > 0)
    throw new Error(['package-lock.json is not up to date: run npm install.', ...problems].join('\n'));
}

const checks: Record<string, Check> = {
  types: program('tsc', '--noEmit', '-p', '.'),
  lint: program('oxlint', '--deny-warnings'),
  format: program('prettier', '--check', '--log-level', 'warn', '.'),
  'lock file': checkLockFile,
};

/** Runs the checks side by side, each a step of its own, and shows what the failed ones say. */
export async function runChecks(
  terminal: Terminal,
  signal: AbortSignal,
): Promise<{ passed: number; failed: number }> {
  const results = await Promise.all(
    Object.entries(checks).map(([name, check]) =>
      terminal
        .step(name, () => check(signal))
        .then(
          () => true,
          (error: Error) => {
            signal.throwIfAborted();
            terminal.line(error.message.trimEnd());
            return false;
          },
        ),
    ),
  );
  const passed = results.filter(Boolean).length;
  return { passed, failed: results.length - passed };
}
