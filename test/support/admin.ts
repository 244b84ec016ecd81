import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';
import { runCommand } from '../../deploy/local/run-command.ts';

/** The operator's command: ADMIN_COMMAND, or the program behind `npm run admin`. */
const command = process.env['ADMIN_COMMAND']?.split(' ') ?? [
  process.execPath,
  join(ROOT, 'deploy/local/admin.ts'),
];

/** Runs an administration command and returns the last line of its output. */
export async function admin(...args: string[]): Promise<string> {
  const [program, ...before] = command;
  const env = { STACK_FILE: process.env['STACK_FILE'] ?? '' };
  const { code, output } = await runCommand(program!, [...before, ...args], { within: 60_000, env });
  if (code !== 0) throw new Error(output);
  return output.trimEnd().split('\n').at(-1)!;
}
