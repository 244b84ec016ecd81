// Manages users and machine clients of an installation; for a list of commands run `node services/auth/admin.ts help`.
import { runCommand } from '@content-platform/chassis';
import { createClient, disableClient, rotateClient } from './commands/clients.ts';
import { endAllSessions, rotateKeys, rotateKeySecret } from './commands/keys.ts';
import { replayDeletions } from './commands/replay-deletions.ts';
import { createUser, importUsers, listUnverifiedIdentities, resetMfa } from './commands/users.ts';
import { verifyAudit } from './commands/verify-audit.ts';
import type { Command } from './commands/command.ts';
import { withAccounts } from './accounts.ts';
import { readDatabaseUrl } from './config.ts';

const help = `Usage:
  create-user --email ADDRESS --name NAME [--role user|sre|admin]…
      Creates a user. The command asks for the password, or reads it from the first line of stdin: 15 to 128
      characters (PASSWORD_MIN_LENGTH), not easy to guess.
  create-client NAME --scope SCOPE [--scope SCOPE]…
      Creates a machine client and prints its secret, once.
  rotate-client NAME
      Replaces the secret of a machine client and prints the new one, once. The old secret and its tokens are refused.
  disable-client NAME
      Permanently revokes a machine client's secret and tokens.
  import-users
      Reads users from stdin, one JSON object a line: {"email", "name", "password_hash", "roles"?}.
      Hashes may be bcrypt ($2y$, as Laravel stores them) or argon2id. The command imports all users, or none.
  rotate-keys [--now]
      Creates the key that signs access tokens from ten minutes on, and prints the times.
      --now: for a leaked key. The new key signs immediately, and within a second every service refuses the old keys.
  end-all-sessions
      Logs everyone out: ends all sessions and replaces the signing keys.
  replay-deletions
      Deletes users again whose deletion is recorded in the logs database (LOGS_DATABASE_URL). Run it after a restore of
      the platform's database from a backup.
  reset-mfa EMAIL
      Removes the second factor of a user who has lost it.
  list-unverified-identities
      Lists users who can log in at the identity provider with an email that it has not verified.
  verify-audit [--contains SEQ:HASH]
      Checks the audit log against its hash chain, and prints the newest link as SEQ:HASH. Store it outside of the
      database. --contains: the chain must contain this link of an earlier check.
  rotate-key-secret
      Encrypts all keys with AUTH_KEY_SECRET_NEW instead of AUTH_KEY_SECRET.
The commands rotate-keys, end-all-sessions and rotate-key-secret need the AUTH_KEY_SECRET of the auth service. Each secret can be given as a file: AUTH_KEY_SECRET_FILE.
DATABASE_URL (or DATABASE_URL_FILE) is the URL of the platform's database.`;

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
  'end-all-sessions': run(endAllSessions),
  'replay-deletions': run(replayDeletions),
  'reset-mfa': run(resetMfa),
  'list-unverified-identities': run(listUnverifiedIdentities),
  'verify-audit': run(verifyAudit),
  'rotate-key-secret': run(rotateKeySecret),
});
