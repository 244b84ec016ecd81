// Letters of an installation: `node services/letters/admin.ts help`.
import { createLetter } from './commands/create-letter.ts';
import { readAdminConfig } from './config.ts';
import { openLetters } from './letters.ts';

const help = `Usage:
  create-letter EMAIL-or-USER-ID TITLE [--webform ID[:required]]…
      Makes a letter of this user, a draft, with these webforms. A required webform cannot be skipped.
DATABASE_URL (or DATABASE_URL_FILE) names the platform's database.`;

const [name = 'help', ...args] = process.argv.slice(2);
try {
  if (name !== 'help' && name !== 'create-letter') throw new Error(`There is no command ${name}; try help.`);
  const open = () => openLetters(readAdminConfig().DATABASE_URL);
  process.stdout.write(`${name === 'help' ? help : await createLetter(args, open)}\n`);
} catch (error) {
  // One line, whatever it was: what was typed, the database.
  process.stderr.write(`admin: ${(error as Error).message.split('\n')[0]}\n`);
  process.exitCode = 1;
}
