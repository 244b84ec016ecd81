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

/** A database that must not be read. */
export const loadNothing: LoadRecord = () => Promise.reject(new Error('the database was read'));
