import { setTimeout as sleep } from 'node:timers/promises';
import type { Handler, Logger } from '@content-platform/chassis';
import type { deleteMedia as contract } from '@content-platform/contract';
import type { FileStore } from '../file-store.ts';
import { keysOf } from '../media-file.ts';
import { noSuchFile } from '../no-such-file.ts';
import type { Store } from '../stores/store.ts';

const removeMs = 5_000;

/** The row goes first: what a crash leaves then is files that nobody can ask for, and the sweep finds. */
export function deleteMedia(deps: {
  files: FileStore;
  store: Store;
  logger: Logger;
}): Handler<typeof contract> {
  return async ({ params: { id }, caller }) => {
    const file = await deps.files.remove(caller.id, id);
    if (!file) throw noSuchFile();
    const removals = keysOf(file).map((key) =>
      deps.store.remove(key).catch((error: unknown) => {
        deps.logger.warn({ error, key }, 'a deleted file stays in the store until it is swept');
      }),
    );
    // It is gone for everybody: the client need not wait for a store that hangs.
    await Promise.race([Promise.all(removals), sleep(removeMs, undefined, { ref: false })]);
    return { status: 204 };
  };
}
