// Uploaded files of an installation: `node services/media-upload/admin.ts help`.
import { createDatabase, createLogger, createMetrics, createSlowLog } from '@content-platform/chassis';
import { type Opened, sweepMedia } from './commands/sweep-media.ts';
import { readAdminConfig } from './config.ts';
import { createFileStore } from './file-store.ts';
import { migrateMedia } from './schema.ts';
import { storeFromConfig } from './stores/from-config.ts';

const help = `Usage:
  sweep-media [--delete]
      Finds files without a row (those older than an hour), and rows without a file. Deletes them only with --delete.
It needs the service's MEDIA_FOLDER, or its S3 settings.
DATABASE_URL (or DATABASE_URL_FILE) names the platform's database.`;

async function open(): Promise<Opened> {
  const config = readAdminConfig();
  const store = await storeFromConfig(config);
  const logger = createLogger('media-upload', 'warn', process.stderr);
  const metrics = createMetrics('media-upload');
  const slowLog = createSlowLog(undefined, metrics, logger);
  const { DATABASE_URL: url } = config;
  const database = createDatabase({ url, logger, metrics, slowLog, slowQueryMs: 60_000 });
  const close = async () => {
    store.close();
    await database.close();
  };
  try {
    // The migration waits for a database that is away; whoever types a command would rather know.
    await Promise.all([database.ping(), store.check()]);
    await migrateMedia(url, logger);
    return { files: createFileStore(database.query, store.name), store, close };
  } catch (error) {
    await close();
    throw error;
  }
}

const [name = 'help', ...args] = process.argv.slice(2);
try {
  if (name !== 'help' && name !== 'sweep-media') throw new Error(`There is no command ${name}; try help.`);
  process.stdout.write(`${name === 'help' ? help : await sweepMedia(args, open)}\n`);
} catch (error) {
  // One line, whatever it was: what was typed, the database, the store.
  process.stderr.write(`admin: ${(error as Error).message.split('\n')[0]}\n`);
  process.exitCode = 1;
}
