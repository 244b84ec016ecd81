import type { Readable, Writable } from 'node:stream';
import type { Accounts } from '../accounts.ts';

/** What a command works with. */
export interface Surroundings {
  input: Readable & { isTTY?: boolean };
  /** Where a person is asked; what a command has to say it returns. */
  prompts: Writable;
  /** Opens the database during `work`: only once what was typed has been found right. */
  withAccounts<T>(work: (accounts: Accounts) => Promise<T>): Promise<T>;
}

/** Returns what to print. Throws CommandError, and what the database throws. */
export type Command = (args: string[], around: Surroundings) => Promise<string>;

/** What was typed, or read from stdin, is wrong; `message` is one line for the person at the keyboard. */
export class CommandError extends Error {}
