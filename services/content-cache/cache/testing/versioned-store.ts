import { setTimeout as sleep } from 'node:timers/promises';

import type { View } from '../keys.ts';
import type { LoadedRecord } from '../record-cache.ts';
import type { Random } from './random.ts';

export interface Commit {
  version: number;
  /** false: the change deleted the record */
  exists: boolean;
}

/** What the race runs against. `change` may be answered later than the commit, `load` later than what it saw. */
export interface RaceDatabase {
  load(model: string, id: number, view: View): Promise<LoadedRecord | null>;
  change(model: string, id: number, exists: boolean): Promise<Commit>;
}

/**
 * A database of versions in this process's memory. What a load returns was true at one moment; how long it takes to
 * reach the reader after that is what the race is about: mostly little, now and then long enough for several clears.
 */
export function createVersionedStore(random: Random): RaceDatabase {
  const commits = new Map<string, Commit>();
  const delay = async () => {
    const dice = random();
    if (dice < 0.3) return;
    await sleep(dice < 0.9 ? random() * 4 : 15 + random() * 45);
  };
  const current = (key: string) => commits.get(key) ?? { version: 1, exists: true };

  return {
    async load(model, id, view) {
      await delay();
      const { version, exists } = current(`${model}:${id}`);
      await delay();
      return exists ? { version, payload: JSON.stringify({ model, id, view, version }) } : null;
    },
    async change(model, id, exists) {
      const key = `${model}:${id}`;
      const commit = { version: current(key).version + 1, exists };
      commits.set(key, commit);
      return commit;
    },
  };
}
