import type { Handler, Logger } from '@content-platform/chassis';
import type { deleteMedia as contract } from '@content-platform/contract';
import type { FileStore } from '../file-store.ts';
import { keysOf } from '../media-file.ts';
import { noSuchFile } from '../no-such-file.ts';
import type { Store } from '../stores/store.ts';

/** The row goes first: what a crash leaves then is files that nobody can ask for, and the sweep finds. */
export function deleteMedia(deps: {
  files: FileStore;
  store: Store;
  logger: Logger;
}): Handler<typeof contract> {
  return async ({ params: { id }, caller }) => {
    const file = await deps.files.remove(caller.id, id);
    if (!file) throw noSuchFile();
    for (const key of keysOf(file)) {
      await deps.store.remove(key).catch((error: unknown) => {
        deps.logger.warn({ error, key }, 'a deleted file stays in the store until it is swept');
      });
    }
    return { status: 204 };
  };
}
