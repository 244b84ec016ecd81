import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { environmentWith } from './config.ts';

export interface CommandResult {
  code: number;
  output: string;
}

export interface CommandOptions {
  /** Ends the command, and everything that it started, with SIGKILL. */
  signal?: AbortSignal;
  /** ms after which it is ended in the same way. */
  within?: number;
  cwd?: string;
  env?: Record<string, string>;
}

/**
 * Runs a command to its end. What it wrote, stdout and stderr together, is the result; an exit code other than 0 is
 * no error here. A command that cannot be started or took too long has code -1.
 * @throws the signal's reason when it was ended by that
 */
export async function runCommand(
  command: string,
  args: string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  options.signal?.throwIfAborted();
  const child = spawn(command, args, {
    // A group of its own: Ctrl-C on the terminal is for the launcher to deal with.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: environmentWith(options.env ?? {}),
    ...(options.cwd && { cwd: options.cwd }),
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
  const kill = (): void => {
    try {
      if (child.pid) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // it ended in the meantime
    }
  };
  const timer = options.within === undefined ? undefined : setTimeout(kill, options.within);
  options.signal?.addEventListener('abort', kill, { once: true });
  const code = await new Promise<number>((resolve) => {
    child.on('error', (error) => {
      output += error.message;
      resolve(-1);
    });
    child.on('close', (exit) => resolve(exit ?? -1));
  });
  clearTimeout(timer);
  options.signal?.removeEventListener('abort', kill);
  options.signal?.throwIfAborted();
  return { code, output };
}

/** The path of a program that is on PATH; the first of the names that is there. */
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

/** The last lines of a text, for showing why something failed. */
export const lastLines = (text: string, count = 15): string[] => text.trimEnd().split('\n').slice(-count);
