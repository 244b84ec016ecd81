// Manages uploaded files of an installation; for a list of commands run `node services/media-upload/admin.ts help`.
import { openDatabase, runCommand } from '@content-platform/chassis';
import { type OpenStores, sweepMedia } from './commands/sweep-media.ts';
import { readAdminConfig } from './config.ts';
import { createFileStore } from './file-store.ts';
import { storeFromConfig } from './stores/from-config.ts';

const help = `Usage:
  sweep-media [--delete]
      Finds files without a row (those older than an hour), and rows without a file. Deletes them only with --delete.
It needs the MEDIA_FOLDER or the S3 settings of the service.
DATABASE_URL (or DATABASE_URL_FILE) is the URL of the platform's database.`;

async function open(): Promise<OpenStores> {
  const config = readAdminConfig();
  const store = await storeFromConfig(config);
  try {
    await store.check();
    const database = await openDatabase('media-upload', config.DATABASE_URL);
    const close = async () => {
      store.close();
      await database.close();
    };
    return { files: createFileStore(database, store.name), store, close };
  } catch (error) {
    store.close();
    throw error;
  }
}

await runCommand(help, { 'sweep-media': (args) => sweepMedia(args, open) });
