import { join } from 'node:path';
import { ROOT } from '../deploy/local/config.ts';
import { runCommand } from '../deploy/local/run-command.ts';
import type { Terminal } from '../deploy/local/terminal.ts';

const installed = (program: string): string => join(ROOT, 'node_modules', '.bin', program);

const checks: Record<string, [command: string, ...args: string[]]> = {
  types: [installed('tsc'), '--noEmit', '-p', '.'],
  lint: [installed('oxlint'), '--deny-warnings'],
  format: [installed('oxfmt'), '--check'],
  'generated files': [process.execPath, join(ROOT, 'deploy/render/render.ts'), '--check'],
  'lock file': ['npm', 'ci', '--dry-run', '--ignore-scripts', '--no-audit', '--no-fund'],
};

/** Runs the checks in parallel as separate steps and prints the output of failed ones. */
export async function runChecks(terminal: Terminal, signal: AbortSignal) {
  const run = async ([command, ...args]: [string, ...string[]]): Promise<void> => {
    const { code, output } = await runCommand(command, args, { signal, cwd: ROOT });
    if (code !== 0) throw new Error(output);
  };
  const steps = Object.entries(checks).map(([name, command]) => terminal.step(name, () => run(command)));
  const results = await Promise.allSettled(steps);
  signal.throwIfAborted();
  const failures = results.flatMap((result) =>
    result.status === 'rejected' ? [result.reason as Error] : [],
  );
  for (const { message } of failures) terminal.line(message.trimEnd());
  return { passed: results.length - failures.length, failed: failures.length };
}
