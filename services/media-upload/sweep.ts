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
 * stored before their row. Throws if only the table or only the store is empty, because the settings are then wrong.
 */
export async function findOrphans(files: FileStore, store: Store) {
  const start = performance.now();
  const rows = new Map<string, { id: number; isHere: boolean; own: string[]; missing: Set<string> }>();
  for await (const file of await files.all()) {
    const own = keysOf(file);
    rows.set(file.object, { id: file.id, isHere: file.isHere, own, missing: new Set(own) });
  }
  const keys = new Set<string>();
  let seen = 0;
  for await (const { key, ageMs } of store.list()) {
    const object = ownKey.exec(key)?.[1];
    if (object === undefined) continue;
    seen += 1;
    const row = rows.get(object);
    row?.missing.delete(key);
    // The age at the start: listing millions of files can take longer than an hour.
    if (!row?.own.includes(key) && ageMs - (performance.now() - start) > minOrphanAgeMs) keys.add(key);
  }
  const here = [...rows].filter(([, { isHere }]) => isHere);
  if (seen === 0 ? here.length > 0 : rows.size === 0) {
    throw new Error(
      `The store has ${seen || 'no'} files, but the table has ${here.length || 'no'} rows: check that the settings name the right store and database.`,
    );
  }
  // Network file systems can omit a file from a list of a folder that changes, or list it twice.
  for (const [, { missing }] of here)
    for (const key of missing) if ((await store.get(key))?.destroy()) missing.delete(key);
  const incomplete = here.filter(([, { missing }]) => missing.size > 0);
  const lost = incomplete.map(([object, { id, missing }]) => ({ id, object, missing: [...missing] }));
  return { keys: [...keys], rows: lost };
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
