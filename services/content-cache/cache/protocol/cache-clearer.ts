import type { ClearTransport } from '../connection.ts';
import { recordKey } from './record-cache.ts';
import { createSweep, modelTarget } from './sweep.ts';

/** sweep: other programs may have written keys `<model>:<id>:…`, clears delete them; none: there are no such keys. */
export type UnmanagedKeys = 'sweep' | 'none';

/**
 * All methods return the number of keys deleted, one for each cached view and one for each unmanaged key, once no read
 * can return anything older than what was committed at the call.
 *
 * A CacheError (CacheUnavailable, CacheRefused) means that the clear may have failed: retry the clear before acknowledging it.
 */
export interface CacheClearer {
  /** Clears one record: `<model>:<id>` and, with 'sweep', `<model>:<id>:…`. */
  clearModel(model: string, id: number): Promise<number>;
  /** Clears records of a model, with one sweep. Returns the number for each of the ids, which must differ. */
  clearRecords(model: string, ids: readonly number[]): Promise<number[]>;
  /** Clears all records of a known model: the pattern `<model>:*`. */
  clearPattern(model: string): Promise<number>;
}

/** CLEARs sent at once: a longer list does not delay the reads behind it. */
const sliceSize = 100;

export function createCacheClearer(transport: ClearTransport, unmanagedKeys: UnmanagedKeys): CacheClearer {
  const sweep = createSweep(transport);

  async function clearRecords(model: string, ids: readonly number[]): Promise<number[]> {
    const keys = ids.map((id) => recordKey(model, id));
    const views: number[] = [];
    for (let start = 0; start < keys.length; start += sliceSize)
      views.push(...(await Promise.all(keys.slice(start, start + sliceSize).map(transport.clear))));
    if (unmanagedKeys === 'none') return views;
    const unmanaged = await sweep(keys);
    return views.map((count, index) => count + unmanaged[index]!);
  }

  return {
    clearModel: async (model, id) => (await clearRecords(model, [id]))[0]!,
    clearRecords,
    clearPattern: async (model) => (await sweep([modelTarget(model)]))[0]!,
  };
}
