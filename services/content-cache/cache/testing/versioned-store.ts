import { setTimeout as sleep } from 'node:timers/promises';

import type { View } from '../keys.ts';
import type { LoadedRecord } from '../record-cache.ts';
import type { Ledger } from './ledger.ts';
import type { Random } from './random.ts';

/** What the race runs against. `change` may be answered later than the commit, `load` later than what it saw. */
export interface RaceDatabase {
  load(ledger: Ledger, view: View): Promise<LoadedRecord | null>;
  /** Answers the version that was committed. `exists` false: the change deletes the record. */
  change(ledger: Ledger, exists: boolean): Promise<number>;
}

/**
 * A database of versions in memory. What a load returns was true at one moment; how long it takes to reach the reader
 * after that is what the race is about: mostly little, now and then long enough for several clears.
 */
export function createVersionedStore(random: Random): RaceDatabase {
  const delay = async () => {
    const dice = random();
    if (dice < 0.3) return;
    await sleep(dice < 0.9 ? random() * 4 : 15 + random() * 45);
  };

  return {
    async load({ model, id, stored }, view) {
      await delay();
      const { version, exists } = stateOf(stored.value);
      await delay();
      return exists ? { version, payload: JSON.stringify({ model, id, view, version }) } : null;
    },
    async change({ stored }, exists) {
      const committed = stored.update((value) => numberOf({ version: stateOf(value).version + 1, exists }));
      return stateOf(committed).version;
    },
  };
}

interface State {
  version: number;
  exists: boolean;
}

/** Version and existence change at once, so both are one number; 0 is version 1, which exists. */
function numberOf({ version, exists }: State): number {
  return (version - 1) * 2 + (exists ? 0 : 1);
}

function stateOf(value: number): State {
  return { version: Math.floor(value / 2) + 1, exists: value % 2 === 0 };
}
