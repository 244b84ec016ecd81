// Manages letters of an installation; for a list of commands run `node services/letters/admin.ts help`.
import { createServiceFetch, openDatabase, runCommand } from '@content-platform/chassis';
import { createLetter } from './commands/create-letter.ts';
import { readAdminConfig } from './config.ts';
import { createFindUser } from './users.ts';

const help = `Usage:
  create-letter EMAIL-or-USER-ID TITLE [--webform ID[:required]]…
      Creates a draft letter for this user with these webforms. A required webform cannot be skipped.
DATABASE_URL (or DATABASE_URL_FILE) is the URL of the platform's database, AUTH_INTERNAL_URL the internal listener of its auth
service, SERVICE_SECRET (or SERVICE_SECRET_FILE) the secret of the letters service there.`;

await runCommand(help, {
  'create-letter': async (args) => {
    const { DATABASE_URL, AUTH_INTERNAL_URL: authInternalUrl, SERVICE_SECRET: secret } = readAdminConfig();
    return createLetter(args, {
      open: () => openDatabase('letters', DATABASE_URL),
      findUser: createFindUser(authInternalUrl, createServiceFetch(authInternalUrl, 'letters', secret)),
    });
  },
});
