import type { LoadedRecord, LoadRecord } from '../record-cache.ts';

export function recordOf(version: number): LoadedRecord {
  return { version, payload: JSON.stringify({ version, title: `Tëst ${version}` }) };
}

/** A database in which the record has this version, and which counts how often it is asked. */
export function loadVersion(version: number, delayMs = 0): LoadRecord & { calls: number } {
  const load = async () => {
    load.calls += 1;
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
    return recordOf(version);
  };
  load.calls = 0;
  return load;
}

/** A database that must not be asked. */
export const loadNothing: LoadRecord = () => Promise.reject(new Error('the database was read'));
