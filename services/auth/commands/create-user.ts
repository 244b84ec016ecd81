import { parseArgs } from 'node:util';
import { z } from 'zod';
import { openAccounts } from '../accounts.ts';
import { readAdminConfig } from '../config.ts';
import { checked, CommandError, email, newPassword, personName, userRoles } from './arguments.ts';
import { readPassword } from './read-password.ts';

const options = {
  email: { type: 'string' },
  name: { type: 'string' },
  role: { type: 'string', multiple: true },
} as const;
const wanted = z.object({ '--email': email, '--name': personName, '--role': userRoles });

/** create-user --email E --name N [--role R]…; the password comes from stdin. Returns what to print. */
export async function createUser(args: string[]): Promise<string> {
  const { values } = parseArgs({ args, options });
  const user = checked('', wanted, {
    '--email': values.email,
    '--name': values.name,
    '--role': values.role,
  });
  const { '--email': address, '--name': name, '--role': roles } = user;
  const { DATABASE_URL } = readAdminConfig();
  const password = checked('The password', newPassword, await readPassword(process.stdin, process.stderr));
  const accounts = await openAccounts(DATABASE_URL);
  try {
    const passwordHash = await accounts.passwords.hash(password);
    const id = await accounts.users.create({ email: address, name, passwordHash, roles });
    if (id === undefined) throw new CommandError(`There is a user with the address ${address} already.`);
    return `Created user ${id}, ${address} (${roles.join(', ')}).`;
  } finally {
    await accounts.close();
  }
}
