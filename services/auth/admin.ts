// Manages users and machine clients of an installation; for a list of commands run `node services/auth/admin.ts help`.
import { runCommand } from '@content-platform/chassis';
import { createClient } from './commands/create-client.ts';
import { createUser } from './commands/create-user.ts';
import { disableClient } from './commands/disable-client.ts';
import { importUsers } from './commands/import-users.ts';
import { rotateClient } from './commands/rotate-client.ts';
import { rotateKeySecret } from './commands/rotate-key-secret.ts';
import { rotateKeys } from './commands/rotate-keys.ts';
import type { Command } from './commands/command.ts';
import { withAccounts } from './accounts.ts';
import { readDatabaseUrl } from './config.ts';

const help = `Usage:
  create-user --email ADDRESS --name NAME [--role user|sre|admin]…
      Makes a user. The password is asked for, or read from the first line of stdin: 15 to 128 characters
      (PASSWORD_MIN_LENGTH), and not easy to guess.
  create-client NAME --scope SCOPE [--scope SCOPE]…
      Makes a machine client and prints its secret, once.
  rotate-client NAME
      Gives a machine client another secret and prints it, once. The old one and its tokens are refused from now on.
  disable-client NAME
      Takes a machine client its secret and its tokens, for good.
  import-users
      Reads users from stdin, one JSON object a line: {"email", "name", "password_hash", "roles"?}.
      Hashes may be bcrypt ($2y$, as Laravel makes them) or argon2id. All are imported, or none.
  rotate-keys
      Makes the key that signs access tokens from ten minutes on, and says what happens when.
  rotate-key-secret
      Encrypts all keys with AUTH_KEY_SECRET_NEW instead of AUTH_KEY_SECRET.
The last two need AUTH_KEY_SECRET, as the auth service has it. Each secret can be given as a file: AUTH_KEY_SECRET_FILE.
DATABASE_URL (or DATABASE_URL_FILE) names the platform's database.`;

const run = (command: Command) => (args: string[]) =>
  command(args, {
    input: process.stdin,
    prompts: process.stderr,
    withAccounts: (work) => withAccounts(readDatabaseUrl(), work),
  });

await runCommand(help, {
  'create-user': run(createUser),
  'create-client': run(createClient),
  'rotate-client': run(rotateClient),
  'disable-client': run(disableClient),
  'import-users': run(importUsers),
  'rotate-keys': run(rotateKeys),
  'rotate-key-secret': run(rotateKeySecret),
});
