import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';
import { runCommand } from '../../deploy/local/run-command.ts';

/** What an operator of the stack types: ADMIN_COMMAND, or what stands behind `npm run admin`. */
const command = process.env['ADMIN_COMMAND']?.split(' ') ?? [
  process.execPath,
  join(ROOT, 'deploy/local/admin.ts'),
];

/** Runs a command for administrators; the last line of what it says. */
export async function admin(...args: string[]): Promise<string> {
  const [program, ...before] = command;
  const env = { STACK_FILE: process.env['STACK_FILE'] ?? '' };
  const { code, output } = await runCommand(program!, [...before, ...args], { within: 60_000, env });
  if (code !== 0) throw new Error(output);
  return output.trimEnd().split('\n').at(-1)!;
}
