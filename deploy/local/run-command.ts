import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { environmentWith } from './config.ts';
import { sendSignal } from './identity.ts';

interface CommandOptions {
  /** Kills the command and its child processes with SIGKILL when aborted. */
  signal?: AbortSignal;
  /** Time limit in ms, after which the command is killed in the same way. */
  within?: number;
  cwd?: string;
  env?: Record<string, string>;
}

/**
 * Runs a command and returns its exit code and its output (stdout and stderr). A command that cannot start or that timed
 * out has the code -1. @throws the signal's reason if the signal aborted the command
 */
export async function runCommand(
  command: string,
  args: string[],
  options: CommandOptions = {},
): Promise<{ code: number; output: string }> {
  options.signal?.throwIfAborted();
  const child = spawn(command, args, {
    // A process group of its own, because the launcher handles Ctrl-C.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: environmentWith(options.env ?? {}),
    ...(options.cwd && { cwd: options.cwd }),
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
  const kill = (): void => sendSignal(-(child.pid ?? 0), 'SIGKILL');
  const timer = options.within === undefined ? undefined : setTimeout(kill, options.within);
  options.signal?.addEventListener('abort', kill, { once: true });
  const [code] = await once(child, 'close').catch((error: Error) => {
    output += error.message;
    return [null];
  });
  clearTimeout(timer);
  options.signal?.removeEventListener('abort', kill);
  options.signal?.throwIfAborted();
  return { code: (code as number | null) ?? -1, output };
}

/** Returns the path of the first of these programs that is on PATH. */
export const onPath = (...names: string[]): string | undefined =>
  names
    .flatMap((name) => (environmentWith({}).PATH ?? '').split(delimiter).map((folder) => join(folder, name)))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });

/** Returns the last lines of a text, to show the cause of a failure. */
export const lastLines = (text: string, count = 15): string[] => text.trimEnd().split('\n').slice(-count);
