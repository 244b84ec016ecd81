import { setTimeout as sleep } from 'node:timers/promises';
import type { View } from '@content-platform/contract';
import type { LoadedRecord } from '../protocol/record-cache.ts';
import type { Ledger } from './ledger.ts';
import type { Random } from './random.ts';

/**
 * A race's database of versions in memory. A load returns the state of one moment, after a random delay: mostly short, sometimes
 * long enough for several clears.
 */
export function createVersionedStore(random: Random) {
  const delay = async () => {
    const dice = random();
    if (dice < 0.3) return;
    await sleep(dice < 0.9 ? random() * 4 : 15 + random() * 45);
  };

  return {
    async load({ model, id, stored }: Ledger, view: View): Promise<LoadedRecord | null> {
      await delay();
      const { version, exists } = stateOf(stored.value);
      await delay();
      return exists ? { version, payload: JSON.stringify({ model, id, view, version }) } : null;
    },
    /** Returns the committed version. With `exists` false the change deletes the record. */
    async change({ stored }: Ledger, exists: boolean): Promise<number> {
      const committed = stored.update((value) => numberOf({ version: stateOf(value).version + 1, exists }));
      return stateOf(committed).version;
    },
  };
}

interface State {
  version: number;
  exists: boolean;
}

/** Encodes version and existence in one number, as they change together; 0 is version 1, which exists. */
function numberOf({ version, exists }: State): number {
  return (version - 1) * 2 + (exists ? 0 : 1);
}

function stateOf(value: number): State {
  return { version: Math.floor(value / 2) + 1, exists: value % 2 === 0 };
}
