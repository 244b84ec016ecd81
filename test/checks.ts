import { join } from 'node:path';
import { ROOT } from '../deploy/local/config.ts';
import { runCommand } from '../deploy/local/run-command.ts';
import type { Terminal } from '../deploy/local/terminal.ts';

const CHECKS = [
  { name: 'types', command: 'tsc', args: ['--noEmit', '-p', '.'] },
  { name: 'lint', command: 'oxlint', args: ['--deny-warnings'] },
  { name: 'format', command: 'prettier', args: ['--check', '--log-level', 'warn', '.'] },
];

/** Runs types, lint and format side by side, each a step of its own, and shows what the failed ones say. */
export async function runChecks(
  terminal: Terminal,
  signal: AbortSignal,
): Promise<{ passed: number; failed: number }> {
  const results = await Promise.all(
    CHECKS.map(async ({ name, command, args }) => {
      const file = join(ROOT, 'node_modules', '.bin', command);
      const work = async (): Promise<string> => {
        const { code, output } = await runCommand(file, args, { signal, cwd: ROOT });
        if (code !== 0) throw new Error(output);
        return output;
      };
      return terminal.step(name, work).then(
        () => true,
        (error: Error) => {
          signal.throwIfAborted();
          terminal.line(error.message.trimEnd());
          return false;
        },
      );
    }),
  );
  const passed = results.filter(Boolean).length;
  return { passed, failed: results.length - passed };
}
