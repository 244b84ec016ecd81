import { withTimeout, type Handler, type Logger } from '@content-platform/chassis';
import type { deleteMedia as contract } from '@content-platform/contract';
import type { FileStore } from '../file-store.ts';
import { keysOf, fileNotFound } from '../media-file.ts';
import type { Store } from '../stores/store.ts';

const maxRemovalMs = 5_000;

/** Deletes the row first: after a crash the remaining files cannot be read, and the service removes them later. */
export function deleteMedia(deps: {
  files: FileStore;
  store: Store;
  logger: Logger;
}): Handler<typeof contract> {
  return async ({ params: { id }, caller }) => {
    const file = await deps.files.remove(caller.id, id);
    if (!file) throw fileNotFound();
    const removal = Promise.all(keysOf(file).map((key) => deps.store.remove(key)))
      .then(() => deps.files.forget([file.object]))
      .catch((error: unknown) => {
        const { object } = file;
        deps.logger.warn({ error, object }, 'files of a deleted row not removed from the store; retrying');
      });
    // Without its row the file cannot be read, so the client need not wait for a store that hangs.
    await withTimeout(removal, maxRemovalMs);
    return { status: 204 };
  };
}
