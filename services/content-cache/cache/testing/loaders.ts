import type { LoadedRecord, LoadRecord } from '../protocol/record-cache.ts';

export function recordOf(version: number): LoadedRecord {
  return { version, payload: JSON.stringify({ version, title: `Tëst ${version}` }) };
}

/** A database in which the record has this version. Counts its calls. */
export function loadVersion(version: number, delayMs = 0): LoadRecord & { calls: number } {
  const load = async () => {
    load.calls += 1;
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
    return recordOf(version);
  };
  load.calls = 0;
  return load;
}

/** A database in which the record has this version, and which answers after release(). */
export function heldLoad(version: number) {
  const begun = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const load: LoadRecord = async () => {
    begun.resolve();
    await released.promise;
    return recordOf(version);
  };
  return { load, begun: begun.promise, release: released.resolve };
}

/** A database that must not be read. */
export const loadNothing: LoadRecord = () => Promise.reject(new Error('the database was read'));
