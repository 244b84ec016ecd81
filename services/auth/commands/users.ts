import { buffer as readAll } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import * as contract from '@content-platform/contract';
import { ensureUser } from '../accounts.ts';
import { addUser, byCommand, removeMfa } from '../administration.ts';
import { readPasswordConfig } from '../config.ts';
import { createPasswordPolicy } from '../passwords/password-policy.ts';
import { isSupported } from '../passwords/passwords.ts';
import type { NewUser } from '../user-store.ts';
import { parseArgument, parseOnly, type Command } from './command.ts';
import { readPassword } from './read-password.ts';

/** Returns a schema with the rules of the contract and a message for the command line. */
function field(schema: z.ZodType<string>, message: string) {
  return z.string(message).transform((value, context) => {
    const { data } = schema.safeParse(value);
    if (data === undefined) context.addIssue(message);
    return data ?? z.NEVER;
  });
}

const email = field(contract.email, 'must be an email address');
const name = field(contract.personName, 'must have 1 to 200 visible characters');
/** Accepts any password that a login can send; the password policy checks its strength. */
const newPassword = field(contract.multiLineText(0, Number.MAX_SAFE_INTEGER), 'must have no NUL in it');
const rolesMessage = `must be one of ${contract.roles.join(', ')}`;
const roles = z
  .array(z.enum(contract.roles, rolesMessage), rolesMessage)
  .min(1, rolesMessage)
  .default(['user']);

const options = {
  email: { type: 'string' },
  name: { type: 'string' },
  role: { type: 'string', multiple: true },
} as const;
const optionsForm = z
  .object({ email, name, role: roles })
  .transform(({ role, ...user }) => ({ ...user, roles: role }));

/** Runs `create-user --email E --name N [--role R]…`; reads the password from stdin. */
export const createUser: Command = async (args, context) => {
  const user = parseArgument('--', optionsForm, parseArgs({ args, options }).values);
  const { minLength, blocklist } = readPasswordConfig();
  const policy = createPasswordPolicy(minLength, blocklist);
  const password = parseArgument('The password', newPassword, await readPassword(context));
  const problem = await policy.findProblem(password, user);
  if (problem) throw new Error(`The password ${problem[0]!.toLowerCase()}${problem.slice(1)}`);
  const created = await context.withAccounts((accounts) => ensureUser(accounts, { ...user, password }));
  if (!created) throw new Error(`A user with the email ${user.email} exists already.`);
  return `Created user ${created.id}, ${user.email} (${user.roles.join(', ')}).`;
};

const hashMessage = 'must be bcrypt of cost 4 to 12, or argon2id of at most 64 MiB in 4 passes';
const password_hash = z.string(hashMessage).refine(isSupported, hashMessage);
const lineForm = z
  .strictObject({ email, name, password_hash, roles })
  .transform(({ password_hash: passwordHash, ...user }): NewUser => ({ ...user, passwordHash }));

function parseLine(line: string, where: string): NewUser {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new Error(`${where}: must be JSON`);
  }
  return parseArgument(`${where}: `, lineForm, value);
}

/** Runs `import-users`; reads one JSON user per line of stdin (UTF-8) and imports all users or none. */
export const importUsers: Command = async (args, { input, withAccounts }) => {
  parseArgs({ args });
  const users = new TextDecoder('utf-8', { fatal: true })
    .decode(await readAll(input))
    .split('\n')
    .map((line, index) => ({ line: line.trim(), where: `Line ${index + 1}` }))
    .filter(({ line }) => line !== '')
    .map(({ line, where }) => ({ where, user: parseLine(line, where) }));
  await withAccounts(({ transaction }) =>
    transaction(async (stores) => {
      for (const { where, user } of users) {
        const created = await addUser(stores, user, byCommand);
        if (!created) throw new Error(`${where}: a user with this email exists already`);
      }
    }),
  );
  return `Imported ${users.length} users.`;
};

export const resetMfa: Command = async (args, { withAccounts }) => {
  const address = parseOnly('EMAIL', email, parseArgs({ args, allowPositionals: true }).positionals);
  const removed = await withAccounts(async (accounts) => {
    const user = await accounts.users.findByEmail(address);
    if (!user) throw new Error(`User ${address} was not found.`);
    return accounts.transaction((stores) => removeMfa(stores, user.id, byCommand));
  });
  if (!removed) throw new Error(`User ${address} has no second factor.`);
  return `Removed the second factor of ${address}: the next login needs no code.`;
};

export const listUnverifiedIdentities: Command = async (args, { withAccounts }) => {
  parseArgs({ args });
  const found = await withAccounts(({ identities }) => identities.listUnverified());
  if (found.length === 0) return 'Every linked identity has a verified email address.';
  const lines = found.map(({ id, userId, userEmail, issuer, email: linked, emailVerified }) => {
    const state =
      emailVerified === false ? `email ${linked ?? 'missing'} not verified` : 'no login since the upgrade';
    return `user ${userId} ${userEmail}: identity ${id} at ${issuer}, ${state}`;
  });
  return lines.join('\n');
};
