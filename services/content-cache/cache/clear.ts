import type { ClearingReach } from './connection.ts';
import { recordKey } from './keys.ts';
import { createSweeper, modelTarget } from './sweep.ts';

/** sweep: other programs may have written `<model>:<id>:…`, a clear finds them; none: we are the only writer. */
export type UnmanagedKeys = 'sweep' | 'none';

/**
 * Both resolve with the number of keys deleted, one for each cached view and one for each unmanaged key, once nothing
 * older than what was committed when they were called can be read any more.
 *
 * They throw a CacheError (CacheUnavailable, CacheRefused) when that is not certain: then the clear is not done, and
 * must be tried again before it is acknowledged.
 */
export interface Clearing {
  /** Clears one record: `<model>:<id>` and, with 'sweep', `<model>:<id>:…`. */
  clearModel(model: string, id: number): Promise<number>;
  /** Clears all records of a known model: the pattern `<model>:*`. */
  clearPattern(model: string): Promise<number>;
}

export interface ClearingOptions {
  connection: ClearingReach;
  unmanagedKeys: UnmanagedKeys;
}

export function createClearing({ connection, unmanagedKeys }: ClearingOptions): Clearing {
  const sweeper = createSweeper(connection);
  return {
    async clearModel(model, id) {
      const key = recordKey(model, id);
      const views = await connection.clear(key);
      return unmanagedKeys === 'none' ? views : views + (await sweeper.sweep(key));
    },
    clearPattern: (model) => sweeper.sweep(modelTarget(model)),
  };
}
