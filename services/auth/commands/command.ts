import type { Readable, Writable } from 'node:stream';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import * as contract from '@content-platform/contract';
import { roles, multiLineText } from '@content-platform/contract';
import type { Accounts } from '../accounts.ts';
import { clientName as nameForm } from '../client-store.ts';

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

/**
 * Validates the value and returns the output of `schema`. Throws CommandError with the first problem: `prefix`, the
 * name of the field if there is one, and a message that starts with "must".
 */
export function parseArgument<S extends z.ZodType>(prefix: string, schema: S, value: unknown): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { path, message } = result.error.issues[0]!;
  throw new CommandError(`${(prefix + String(path[0] ?? '')).trimEnd()} ${message}`);
}

/** Returns a schema with the rules of the contract and a message for the command line. */
function field(schema: z.ZodType<string>, message: string) {
  return z.string(message).transform((value, context) => {
    const { data } = schema.safeParse(value);
    if (data === undefined) context.addIssue(message);
    return data ?? z.NEVER;
  });
}

export const email = field(contract.email, 'must be an email address');
export const personName = field(contract.personName, 'must have 1 to 200 visible characters');
/** Accepts any password that a login can send; the password policy checks its strength. */
export const newPassword = field(multiLineText(0, Number.MAX_SAFE_INTEGER), 'must have no NUL in it');
const rolesMessage = `must be of ${roles.join(', ')}`;
export const userRoles = z
  .array(z.enum(roles, rolesMessage), rolesMessage)
  .min(1, rolesMessage)
  .default(['user']);

const nameMessage = 'must be 1 to 64 lower-case letters, digits and dashes, a letter first';
const clientName = z.string(nameMessage).regex(nameForm, nameMessage);

/** Returns the only positional argument, the NAME of a client. Throws CommandError. */
export function clientNameFrom(positionals: string[]): string {
  if (positionals.length > 1) throw new CommandError(`Give exactly one NAME.`);
  return parseArgument('NAME', clientName, positionals[0]);
}

/** Parses arguments that consist of one NAME. Throws CommandError. */
export const parseClientName = (args: string[]) =>
  clientNameFrom(parseArgs({ args, allowPositionals: true, options: {} }).positionals);
