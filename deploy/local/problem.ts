import { ConfigError } from '@content-platform/chassis/config';
import { escapeControls } from './log-view.ts';

/** A failure that the user can fix. Its message is one line with the cause and the remedy. */
export class Problem extends Error {
  /** Lines with details, such as the end of a process's log. */
  readonly lines: string[];

  constructor(message: string, lines: string[] = []) {
    super(message);
    this.name = 'Problem';
    this.lines = lines;
  }
}

const notWritable = new Set(['EACCES', 'EPERM', 'EROFS']);

/** Prints a Problem, a ConfigError or a failed write in one line. Any other error is a bug and has its stack. */
export function printProblem(error: unknown): void {
  const { code = '', path } = (error ?? {}) as NodeJS.ErrnoException;
  // This error has no path.
  if (code === 'ENOSPC') return console.error('The disk is full (ENOSPC): free some space, then try again.');
  if (path && notWritable.has(code))
    return console.error(`Cannot write to ${path} (${code}): let this user write to it, or move its folder.`);
  if (error instanceof ConfigError) return console.error(`${error.message}.`);
  if (!(error instanceof Problem)) return console.error(error);
  for (const line of error.lines) console.error(`  ${escapeControls(line)}`);
  console.error(error.message);
}

/** Thrown to end a wait because the user stops the stack. It is not a failure. */
export class Stopped extends Error {}
