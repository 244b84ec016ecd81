import type { FileStore } from './file-store.ts';
import { allKeysOf, keysOf } from './media-file.ts';
import type { Store } from './stores/store.ts';

/** Younger files may belong to an upload in progress, or to a row that was added after the table was read. */
const minOrphanAgeMs = 3_600_000;

/** The format of our keys. Other files in a folder or bucket are never deleted. */
const ownKey = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-[a-z]+$/;

type Orphans = Awaited<ReturnType<typeof findOrphans>>;

/**
 * Returns the keys of files without a row, and the rows with missing files. Reads the rows first, because files are
 * stored before their row. Throws if the table has rows but the store is empty, because it is then the wrong store.
 */
export async function findOrphans(files: FileStore, store: Store) {
  const start = performance.now();
  const rows = new Map<string, { id: number; isHere: boolean; missing: Set<string> }>();
  for await (const file of await files.all()) {
    rows.set(file.object, { id: file.id, isHere: file.isHere, missing: new Set(keysOf(file)) });
  }
  const keys: string[] = [];
  let seen = 0;
  for await (const { key, ageMs } of store.list()) {
    const object = ownKey.exec(key)?.[1];
    if (object === undefined) continue;
    seen += 1;
    const hasRow = rows.get(object)?.missing.delete(key) ?? false;
    // The age at the start: listing millions of files can take longer than an hour.
    if (!hasRow && ageMs - (performance.now() - start) > minOrphanAgeMs) keys.push(key);
  }
  const here = [...rows].filter(([, { isHere }]) => isHere);
  if (seen === 0 && here.length > 0) {
    throw new Error(
      `The store has no files, but the table has ${here.length} rows: check that the settings name the right store.`,
    );
  }
  const incomplete = here.filter(([, { missing }]) => missing.size > 0);
  return {
    keys,
    rows: incomplete.map(([object, { id, missing }]) => ({ id, object, missing: [...missing] })),
  };
}

/** Deletes the orphans. The next sweep deletes the remaining files of an incomplete row. */
export async function deleteOrphans(files: FileStore, store: Store, { keys, rows }: Orphans): Promise<void> {
  for (const key of keys) await store.remove(key);
  for (const { id, object } of rows) await files.removeRow(id, object);
}

/** Removes files of deleted rows and abandoned uploads. Repeatable after a crash, because an object is forgotten last. */
export async function removePending(files: FileStore, store: Store): Promise<void> {
  for (let last = '00000000-0000-0000-0000-000000000000'; ;) {
    const objects = await files.pending(last);
    if (objects.length === 0) return;
    await Promise.all(objects.flatMap(allKeysOf).map((key) => store.remove(key)));
    await files.forget(objects);
    last = objects.at(-1)!;
  }
}
