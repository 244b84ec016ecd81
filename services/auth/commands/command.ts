import type { Readable, Writable } from 'node:stream';
import { z } from 'zod';
import type { Accounts } from '../accounts.ts';

export interface CommandContext {
  input: Readable & { isTTY?: boolean };
  /** Stream for questions to the user; a command's output is its return value. */
  prompts: Writable;
  /** Opens the database during `work`. Validate the input first. */
  withAccounts<T>(work: (accounts: Accounts) => Promise<T>): Promise<T>;
}

/** Returns the text to print. Throws errors whose message is one line for the user of the command. */
export type Command = (args: string[], context: CommandContext) => Promise<string>;

/**
 * Validates the value and returns the output of `schema`. Throws an error with the first problem: `prefix`, the name of
 * the field if there is one, and a message that starts with "must".
 */
export function parseArgument<S extends z.ZodType>(prefix: string, schema: S, value: unknown): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { path, message } = result.error.issues[0]!;
  throw new Error(`${(prefix + String(path[0] ?? '')).trimEnd()} ${message}`);
}

/** Returns the only positional argument, which the help calls `name`. Throws if there are several, or it is invalid. */
export function parseOnly<S extends z.ZodType>(name: string, schema: S, positionals: string[]): z.output<S> {
  if (positionals.length > 1) throw new Error(`Give exactly one ${name}.`);
  return parseArgument(name, schema, positionals[0]);
}
