import type { Readable, Writable } from 'node:stream';
import type { Accounts } from '../accounts.ts';

/** The dependencies of a command. */
export interface CommandContext {
  input: Readable & { isTTY?: boolean };
  /** Stream for questions to the user; a command's output is its return value. */
  prompts: Writable;
  /** Opens the database during `work`. Validate the input first. */
  withAccounts<T>(work: (accounts: Accounts) => Promise<T>): Promise<T>;
}

/** Returns the text to print. Throws CommandError and database errors. */
export type Command = (args: string[], context: CommandContext) => Promise<string>;

/** The arguments or stdin are invalid; `message` is one line for the user of the command. */
export class CommandError extends Error {}
