import { writeFileSync } from 'node:fs';
import type { ServiceName } from '@content-platform/contract/services';
import { createLogger, type Logger } from './logger.ts';
import { createMetrics } from './metrics.ts';
import { createDatabase, type Database } from './postgres.ts';
import { migrateService } from './prepare-databases.ts';

/** Returns the text to print. Throws errors whose message is for the user. */
type Command = (args: string[]) => Promise<string>;

/** When the memory of a container runs out, the kernel ends this process before the service in the same container. */
function endBeforeService(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', '1000');
  } catch {
    // Not Linux, or its files in /proc are hidden as in the image of media-upload: then the kernel chooses.
  }
}

/** Returns the error and its causes in one line. Messages for clients of the API do not name their cause. */
function lineOf({ message, code, cause }: NodeJS.ErrnoException): string {
  // The error of a host with several IP addresses has a code only.
  const line = message.split('\n')[0] || String(code);
  return cause instanceof Error ? `${line} (${lineOf(cause)})` : line;
}

/** Runs the command that the first argument names (default: `help`). An error prints one line on stderr; exit code 1. */
export async function runCommand(help: string, commands: Record<string, Command>): Promise<void> {
  endBeforeService();
  // The program that reads the output has ended, as in `… help | head -3`. This is not an error.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
  const [name = 'help', ...args] = process.argv.slice(2);
  try {
    const known: Record<string, Command> = { ...commands, help: async () => help };
    if (!Object.hasOwn(known, name)) throw new Error(`Unknown command ${name}. Run help for a list.`);
    process.stdout.write(`${await known[name]!(args)}\n`);
  } catch (error) {
    process.stderr.write(`admin: ${lineOf(error as Error)}\n`);
    process.exitCode = 1;
  }
}

/**
 * Opens a database for a command of `service`, and migrates it first, by default to the schema of the service. Throws if
 * the database is unavailable.
 */
export async function openDatabase(
  service: ServiceName,
  url: string,
  migrate = (logger: Logger) => migrateService(service, url, logger),
): Promise<Database> {
  const logger = createLogger(service, 'warn', process.stderr);
  const database = createDatabase({ url, logger, metrics: createMetrics(service) });
  try {
    // The migration would wait for an unavailable database, but a user needs the error immediately.
    await database.ping();
    await migrate(logger);
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}
