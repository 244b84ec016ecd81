import { ConfigError } from '@content-platform/chassis/config';
import { escapeControls } from './log-view.ts';

/** A failure that the user can do something about: its message is one line that says what is wrong and what to do. */
export class Problem extends Error {
  /** Lines that help to see why, such as the end of a process's log. */
  readonly lines: string[];

  constructor(message: string, lines: string[] = []) {
    super(message);
    this.name = 'Problem';
    this.lines = lines;
  }
}

const notWritable = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOSPC']);

/**
 * Prints an error to stderr: a Problem or ConfigError as its line, a file that cannot be written likewise, and anything else with its
 * stack, since that is a bug of ours.
 */
export function printProblem(error: unknown): void {
  const { code = '', path } = (error ?? {}) as NodeJS.ErrnoException;
  if (path && notWritable.has(code))
    return console.error(
      `Cannot write to ${path} (${code}): free it for this user, or move its folder away.`,
    );
  if (error instanceof ConfigError) return console.error(`${error.message}.`);
  if (!(error instanceof Problem)) return console.error(error);
  for (const line of error.lines) console.error(`  ${escapeControls(line)}`);
  console.error(error.message);
}

/** Why a wait ended: the user wants the stack to stop. Nothing has gone wrong. */
export class Stopped extends Error {
  constructor() {
    super('stopped');
    this.name = 'Stopped';
  }
}
