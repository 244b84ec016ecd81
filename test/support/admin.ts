import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { token } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { ROOT } from '../../deploy/local/config.ts';
import { runCommand } from '../../deploy/local/run-command.ts';
import { stack } from './stack.ts';

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

/** Creates a machine client with these scopes and returns an access token of it. */
export async function clientToken(...scopes: string[]): Promise<string> {
  const client_id = `client-${randomUUID()}`;
  const args = scopes.flatMap((scope) => ['--scope', scope]);
  const client_secret = await admin('create-client', client_id, ...args);
  const body = { grant_type: 'client_credentials', client_id, client_secret };
  return (await call(stack().gateway, token, { body })).body!.access_token;
}
