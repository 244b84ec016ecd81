import { parseArgs } from 'node:util';
import { z } from 'zod';
import { addUser, command } from '../administration.ts';
import { createPasswordPolicy } from '../passwords/password-policy.ts';
import { checked, email, newPassword, personName, userRoles } from './arguments.ts';
import { CommandError, type Command } from './command.ts';
import { readPassword } from './read-password.ts';

const options = {
  email: { type: 'string' },
  name: { type: 'string' },
  role: { type: 'string', multiple: true },
} as const;
const wanted = z.object({ '--email': email, '--name': personName, '--role': userRoles });

/** create-user --email E --name N [--role R]…; the password comes from stdin. `readMinLength` reads PASSWORD_MIN_LENGTH. */
export function createUser(readMinLength: () => number): Command {
  return async (args, around) => {
    const { values } = parseArgs({ args, options });
    const user = checked('', wanted, {
      '--email': values.email,
      '--name': values.name,
      '--role': values.role,
    });
    const { '--email': address, '--name': name, '--role': roles } = user;
    const policy = createPasswordPolicy(readMinLength());
    const password = checked('The password', newPassword, await readPassword(around));
    const complaint = policy.complaint(password, { email: address, name });
    if (complaint) throw new CommandError(`The password ${complaint[0]!.toLowerCase()}${complaint.slice(1)}`);
    const accounts = await around.open();
    try {
      const passwordHash = await accounts.passwords.hash(password);
      const made = { email: address, name, passwordHash, roles };
      const id = await accounts.transaction((stores) => addUser(stores, made, command));
      if (id === undefined) throw new CommandError(`There is a user with the address ${address} already.`);
      return `Created user ${id}, ${address} (${roles.join(', ')}).`;
    } finally {
      await accounts.close();
    }
  };
}
