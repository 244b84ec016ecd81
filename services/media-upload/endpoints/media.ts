import { type Handler, type Logger, page, withTimeout } from '@content-platform/chassis';
import type * as contract from '@content-platform/contract';
import type { FileStore } from '../file-store.ts';
import { fileNotFound, keysOf, mediaFile } from '../media-file.ts';
import type { Store } from '../stores/store.ts';

export interface MediaDeps {
  files: FileStore;
  store: Store;
  publicUrl: string;
  logger: Logger;
}

export function listMedia({ files, publicUrl }: MediaDeps): Handler<typeof contract.listMedia> {
  return async ({ query: { limit, cursor }, caller }) => {
    const read = (rows: number) => files.list(caller.id, cursor, rows);
    return { status: 200, body: await page(limit, read, (file) => mediaFile(publicUrl, file)) };
  };
}

export function readMedia({ files, publicUrl }: MediaDeps): Handler<typeof contract.readMedia> {
  return async ({ params: { id }, caller }) => {
    const file = await files.find(caller.id, id);
    if (!file) throw fileNotFound();
    return { status: 200, body: mediaFile(publicUrl, file) };
  };
}

const maxRemovalMs = 5_000;

/** Deletes the row first: after a crash the remaining files cannot be read, and the service removes them later. */
export function deleteMedia({ files, store, logger }: MediaDeps): Handler<typeof contract.deleteMedia> {
  return async ({ params: { id }, caller }) => {
    const file = await files.remove(caller.id, id);
    if (!file) throw fileNotFound();
    const { object } = file;
    const removal = Promise.all(keysOf(file).map((key) => store.remove(key)))
      .then(() => files.forget([object]))
      .catch((error: unknown) =>
        logger.warn({ error, object }, 'files of a deleted row not removed from the store; retrying'),
      );
    // Without its row the file cannot be read, so the client need not wait for a store that hangs.
    await withTimeout(removal, maxRemovalMs);
    return { status: 204 };
  };
}
