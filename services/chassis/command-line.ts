import { createLogger, type Logger } from './logger.ts';
import { createMetrics } from './metrics.ts';
import { createDatabase, type Database } from './postgres.ts';

/** Returns the text to print. The message of the error it throws is for the person at the keyboard. */
export type Command = (args: string[]) => Promise<string>;

/**
 * Runs the command that the first argument of this process names, `help` without one, and prints its result. An error is
 * one line on stderr and exit code 1.
 */
export async function runCommand(help: string, commands: Record<string, Command>): Promise<void> {
  // The reader has what it wants, as in `… help | head -3`.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
  const [name = 'help', ...args] = process.argv.slice(2);
  try {
    const known: Record<string, Command> = { ...commands, help: async () => help };
    if (!Object.hasOwn(known, name)) throw new Error(`There is no command ${name}; try help.`);
    process.stdout.write(`${await known[name]!(args)}\n`);
  } catch (error) {
    process.stderr.write(`admin: ${(error as Error).message.split('\n')[0]}\n`);
    process.exitCode = 1;
  }
}

/**
 * Opens the database of `service` for a command, and creates or updates the schema first. Throws when the database is
 * unavailable or refuses.
 */
export async function openDatabase(
  service: string,
  url: string,
  migrate: (url: string, logger: Logger) => Promise<void>,
): Promise<Database> {
  const logger = createLogger(service, 'warn', process.stderr);
  const database = createDatabase({ url, logger, metrics: createMetrics(service) });
  try {
    // The migration would wait for an unavailable database; a person at the keyboard wants to know at once.
    await database.ping();
    await migrate(url, logger);
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}
