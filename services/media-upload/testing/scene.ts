import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDatabase, createLogger, createMetrics, createSlowLog } from '@content-platform/chassis';
import { createTestDatabase } from '../../../test/support/test-database.ts';
import { createFileStore, type NewFile } from '../file-store.ts';
import { migrateMedia } from '../schema.ts';
import { createLocalFolderStore } from '../stores/local-folder.ts';

export type Scene = Awaited<ReturnType<typeof setScene>>;

/** A database and a folder of a test file's own. */
export async function setScene() {
  const testDatabase = await createTestDatabase();
  const { url } = testDatabase;
  const folder = await mkdtemp(join(tmpdir(), 'media-'));
  const logger = createLogger('media-upload', 'error', { write: () => undefined });
  const metrics = createMetrics('media-upload');
  const slowLog = createSlowLog(undefined, metrics, logger);
  await migrateMedia(url, logger);
  const database = createDatabase({ url, logger, metrics, slowLog, slowQueryMs: 60_000 });
  const store = await createLocalFolderStore(join(folder, 'files'));
  return {
    databaseUrl: url,
    /** MEDIA_FOLDER. */
    folder,
    database,
    logger,
    metrics,
    files: createFileStore(database.query, store.name),
    store,
    /** A file to be put into the store. */
    async fileOf(bytes: Buffer): Promise<string> {
      const path = join(folder, randomUUID());
      await writeFile(path, bytes);
      return path;
    },
    async close(): Promise<void> {
      await database.close();
      await testDatabase.drop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A PDF of user 1 that nobody has uploaded before. */
export function newFile(more: Partial<NewFile> = {}): NewFile {
  const object = randomUUID();
  const sizes = { width: null, height: null, bytes: 3 };
  return {
    userId: 1,
    object,
    checksum: Buffer.from(object.replaceAll('-', '').repeat(2), 'hex'),
    mime: 'application/pdf',
    name: 'letter.pdf',
    placeholder: null,
    variants: [{ name: 'original', ...sizes }],
    ...sizes,
    ...more,
  };
}
