import { parseArgs } from 'node:util';
import type { FileStore } from '../file-store.ts';
import type { Store } from '../stores/store.ts';
import { deleteOrphans, findOrphans } from '../sweep.ts';

export interface OpenStores {
  files: FileStore;
  store: Store;
  close(): Promise<void>;
}

/** Runs `sweep-media [--delete]` and returns the text to print. */
export async function sweepMedia(args: string[], open: () => Promise<OpenStores>): Promise<string> {
  const { values } = parseArgs({ args, options: { delete: { type: 'boolean', default: false } } });
  const { files, store, close } = await open();
  try {
    const orphans = await findOrphans(files, store);
    if (values.delete) await deleteOrphans(files, store, orphans);
    const { keys, rows } = orphans;
    const done = values.delete ? 'Deleted.' : 'Nothing was deleted. Use --delete to delete them.';
    return [
      ...keys.map((key) => `file without a row: ${key}`),
      ...rows.map(({ id, missing }) => `row without a file: ${id} lacks ${missing.join(', ')}`),
      `${keys.length} files without a row, ${rows.length} rows without a file.`,
      ...(keys.length + rows.length > 0 ? [done] : []),
    ].join('\n');
  } finally {
    await close();
  }
}
