import { constants } from 'node:fs';
import { access, mkdir, open, opendir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { readFlags, type Store } from './store.ts';

/** Resolves with undefined if the file does not exist. */
const ifExists = <T>(work: Promise<T>): Promise<T | undefined> =>
  work.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });

/** Flushes a file or folder to the disk. */
async function sync(path: string): Promise<void> {
  const handle = await open(path, readFlags);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Stores files in `folder` by renaming them, so that a named file is complete. Sources must be on the same file system. */
export async function createLocalFolderStore(folder: string): Promise<Store> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const pathOf = (key: string) => join(folder, key);

  return {
    // Omits the path, because the folder may be moved or mounted elsewhere.
    name: 'folder',
    async put(key, path) {
      await sync(path);
      await rename(path, pathOf(key));
      // Without this a crash could lose the file's name.
      await sync(folder);
    },
    async get(key, range) {
      const handle = await ifExists(open(pathOf(key), readFlags));
      return handle?.createReadStream({ ...range });
    },
    remove: (key) => rm(pathOf(key), { force: true }),
    async *list() {
      for await (const { name } of await opendir(folder)) {
        const found = await ifExists(stat(pathOf(name)));
        if (found?.isFile()) yield { key: name, ageMs: Date.now() - found.ctimeMs };
      }
    },
    check: () => access(folder, constants.R_OK | constants.W_OK),
    close: () => undefined,
  };
}
