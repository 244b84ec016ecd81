// Users and machine clients of an installation: `node services/auth/admin.ts help`.
import { createClient } from './commands/create-client.ts';
import { createUser } from './commands/create-user.ts';
import { importUsers } from './commands/import-users.ts';
import { CommandError, type Command } from './commands/command.ts';
import { openAccounts } from './accounts.ts';
import { readAdminConfig } from './config.ts';

const help = `Usage:
  create-user --email ADDRESS --name NAME [--role user|sre|admin]…
      Makes a user. The password is asked for, or read from the first line of stdin: 12 to 128 characters.
  create-client NAME --scope SCOPE [--scope SCOPE]…
      Makes a machine client and prints its secret, once.
  import-users
      Reads users from stdin, one JSON object a line: {"email", "name", "password_hash", "roles"?}.
      Hashes may be bcrypt ($2y$, as Laravel makes them) or argon2id. All are imported, or none.
DATABASE_URL (or DATABASE_URL_FILE) names the platform's database.`;

const commands: Record<string, Command> = {
  'create-user': createUser,
  'create-client': createClient,
  'import-users': importUsers,
  help: () => Promise.resolve(help),
};

const [name = 'help', ...args] = process.argv.slice(2);
try {
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (!command) throw new CommandError(`There is no command ${name}; try help.`);
  const around = {
    input: process.stdin,
    prompts: process.stderr,
    open: () => openAccounts(readAdminConfig().DATABASE_URL),
  };
  process.stdout.write(`${await command(args, around)}\n`);
} catch (error) {
  // One line, whatever it was: what was typed, the database, a secret's file.
  process.stderr.write(`admin: ${(error as Error).message.split('\n')[0]}\n`);
  process.exitCode = 1;
}
