import type { ClearTransport } from '../connection.ts';
import { recordKey } from './record-cache.ts';
import { createSweep, modelTarget } from './sweep.ts';

/** sweep: other programs may have written keys `<model>:<id>:…`, clears delete them; none: there are no such keys. */
export type UnmanagedKeys = 'sweep' | 'none';

/**
 * Both methods return the number of keys deleted, one for each cached view and one for each unmanaged key, once no read
 * can return anything older than what was committed at the call.
 *
 * A CacheError (CacheUnavailable, CacheRefused) means that the clear may have failed: retry the clear before acknowledging it.
 */
export interface CacheClearer {
  /** Clears one record: `<model>:<id>` and, with 'sweep', `<model>:<id>:…`. */
  clearModel(model: string, id: number): Promise<number>;
  /** Clears all records of a known model: the pattern `<model>:*`. */
  clearPattern(model: string): Promise<number>;
}

export function createCacheClearer(transport: ClearTransport, unmanagedKeys: UnmanagedKeys): CacheClearer {
  const sweep = createSweep(transport);
  return {
    async clearModel(model, id) {
      const key = recordKey(model, id);
      const views = await transport.clear(key);
      return unmanagedKeys === 'none' ? views : views + (await sweep(key));
    },
    clearPattern: (model) => sweep(modelTarget(model)),
  };
}
