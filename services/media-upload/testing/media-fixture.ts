import { writeFile } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { openTestService } from '@content-platform/chassis/testing/open-test-service.ts';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { createFileStore, type NewFile } from '../file-store.ts';
import { createLocalFolderStore } from '../stores/local-folder.ts';
import type { Store } from '../stores/store.ts';

export type MediaFixture = Awaited<ReturnType<typeof createMediaFixture>>;

/** Creates a database and a folder for one test file. */
export async function createMediaFixture() {
  const service = await openTestService('media-upload');
  const folder = temporaryFolder();
  const store = await createLocalFolderStore(join(folder, 'files'));
  return {
    ...service,
    /** MEDIA_FOLDER. */
    folder,
    files: createFileStore(service.database, store.name),
    store,
    /** Writes a file to put into the store. */
    async fileOf(bytes: Buffer): Promise<string> {
      const path = join(folder, randomUUID());
      await writeFile(path, bytes);
      return path;
    },
  };
}

/** Returns the keys of all files in the store. */
export async function keysIn(store: Store): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list()) keys.push(key);
  return keys.toSorted();
}

/** Makes a PDF of user 1 with new bytes. */
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
