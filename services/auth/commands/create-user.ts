import { parseArgs } from 'node:util';
import { z } from 'zod';
import { addUser, command } from '../administration.ts';
import { readPasswordBlocklist, readPasswordMinLength } from '../config.ts';
import { createPasswordPolicy } from '../passwords/password-policy.ts';
import { checked, email, newPassword, personName, userRoles } from './arguments.ts';
import { CommandError, type Command } from './command.ts';
import { readPassword } from './read-password.ts';

const options = {
  email: { type: 'string' },
  name: { type: 'string' },
  role: { type: 'string', multiple: true },
} as const;
const wanted = z.object({ email, name: personName, role: userRoles });

/** Runs `create-user --email E --name N [--role R]…`; reads the password from stdin. */
export const createUser: Command = async (args, around) => {
  const { values } = parseArgs({ args, options });
  const { role: roles, ...person } = checked('--', wanted, values);
  const user = { ...person, roles };
  const policy = createPasswordPolicy(readPasswordMinLength(), readPasswordBlocklist());
  const password = checked('The password', newPassword, await readPassword(around));
  const complaint = policy.complaint(password, user);
  if (complaint) throw new CommandError(`The password ${complaint[0]!.toLowerCase()}${complaint.slice(1)}`);
  const created = await around.withAccounts(async ({ passwords, transaction }) => {
    const passwordHash = await passwords.hash(password);
    return transaction((stores) => addUser(stores, { ...user, passwordHash }, command));
  });
  if (!created) throw new CommandError(`There is a user with the address ${user.email} already.`);
  return `Created user ${created.id}, ${user.email} (${roles.join(', ')}).`;
};
