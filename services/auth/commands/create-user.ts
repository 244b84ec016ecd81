import { parseArgs } from 'node:util';
import { z } from 'zod';
import { addUser, byCommand } from '../administration.ts';
import { readPasswordBlocklist, readPasswordMinLength } from '../config.ts';
import { createPasswordPolicy } from '../passwords/password-policy.ts';
import {
  parseArgument,
  email,
  newPassword,
  personName,
  userRoles,
  CommandError,
  type Command,
} from './command.ts';
import { readPassword } from './read-password.ts';

const options = {
  email: { type: 'string' },
  name: { type: 'string' },
  role: { type: 'string', multiple: true },
} as const;
const wanted = z.object({ email, name: personName, role: userRoles });

/** Runs `create-user --email E --name N [--role R]…`; reads the password from stdin. */
export const createUser: Command = async (args, context) => {
  const { values } = parseArgs({ args, options });
  const { role: roles, ...person } = parseArgument('--', wanted, values);
  const user = { ...person, roles };
  const policy = createPasswordPolicy(readPasswordMinLength(), readPasswordBlocklist());
  const password = parseArgument('The password', newPassword, await readPassword(context));
  const problem = policy.findProblem(password, user);
  if (problem) throw new CommandError(`The password ${problem[0]!.toLowerCase()}${problem.slice(1)}`);
  const created = await context.withAccounts(async ({ passwords, transaction }) => {
    const passwordHash = await passwords.hash(password);
    return transaction((stores) => addUser(stores, { ...user, passwordHash }, byCommand));
  });
  if (!created) throw new CommandError(`A user with the address ${user.email} exists already.`);
  return `Created user ${created.id}, ${user.email} (${roles.join(', ')}).`;
};
