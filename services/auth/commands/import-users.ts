import { text as readAll } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { addUser, byCommand } from '../administration.ts';
import { isSupported } from '../passwords/passwords.ts';
import type { Stores } from '../stores.ts';
import type { NewUser } from '../user-store.ts';
import { parseArgument, email, personName, userRoles, CommandError, type Command } from './command.ts';

const hashMessage = 'must be bcrypt of cost 4 to 12, or argon2id of at most 64 MiB in 4 passes';
const imported = z
  .strictObject({
    email,
    name: personName,
    password_hash: z.string(hashMessage).refine(isSupported, hashMessage),
    roles: userRoles,
  })
  .transform(({ password_hash: passwordHash, ...user }): NewUser => ({ ...user, passwordHash }));

function parse(line: string, where: string): NewUser {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new CommandError(`${where}: must be JSON`);
  }
  return parseArgument(`${where}: `, imported, value);
}

/** Runs `import-users`; reads one JSON user per line of stdin and imports all users or none. */
export const importUsers: Command = async (args, { input, withAccounts }) => {
  parseArgs({ args, options: {} });
  const users = (await readAll(input))
    .split('\n')
    .map((line, index) => ({ line: line.trim(), where: `Line ${index + 1}` }))
    .filter(({ line }) => line !== '')
    .map(({ line, where }) => ({ where, user: parse(line, where) }));
  const importAll = async (stores: Stores) => {
    for (const { where, user } of users) {
      const created = await addUser(stores, user, byCommand);
      if (!created) throw new CommandError(`${where}: a user with this address exists already`);
    }
  };
  await withAccounts(({ transaction }) => transaction(importAll));
  return `Imported ${users.length} users.`;
};
