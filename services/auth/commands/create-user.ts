import { parseArgs } from 'node:util';
import { z } from 'zod';
import { addUser, command } from '../administration.ts';
import { checked, email, newPassword, personName, userRoles } from './arguments.ts';
import { CommandError, type Command } from './command.ts';
import { readPassword } from './read-password.ts';

const options = {
  email: { type: 'string' },
  name: { type: 'string' },
  role: { type: 'string', multiple: true },
} as const;
const wanted = z.object({ '--email': email, '--name': personName, '--role': userRoles });

/** create-user --email E --name N [--role R]…; the password comes from stdin. */
export const createUser: Command = async (args, around) => {
  const { values } = parseArgs({ args, options });
  const user = checked('', wanted, {
    '--email': values.email,
    '--name': values.name,
    '--role': values.role,
  });
  const { '--email': address, '--name': name, '--role': roles } = user;
  const password = checked('The password', newPassword, await readPassword(around));
  const accounts = await around.open();
  try {
    const passwordHash = await accounts.passwords.hash(password);
    const made = { email: address, name, passwordHash, roles };
    const id = await accounts.transaction((query) => addUser(query, made, command));
    if (id === undefined) throw new CommandError(`There is a user with the address ${address} already.`);
    return `Created user ${id}, ${address} (${roles.join(', ')}).`;
  } finally {
    await accounts.close();
  }
};
