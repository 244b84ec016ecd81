import { containersOf } from '../../compose/docker.ts';
import { until } from '../../support/wait.ts';
import { addressOf, redisCli, replicationOf } from '../redis-cli.ts';

export interface Primary {
  container: string;
  id: string;
  /** Its slots, ascending. */
  slots: number[];
}

const nodes = (): Promise<string[]> => containersOf('redis-node');

/** Creates a cluster in which each primary has two replicas. Resolves once every replica follows. */
export async function makeCluster(): Promise<void> {
  const all = await nodes();
  const addresses = (await Promise.all(all.map(addressOf))).map((address) => `${address}:6379`);
  await redisCli(all[0]!, '--cluster', 'create', ...addresses, '--cluster-replicas', '2', '--cluster-yes');
  await until('every primary has two replicas', async () => {
    const counts = (await primaries()).map(({ container }) => replicationOf(container, 'connected_slaves'));
    return (await Promise.all(counts)).join() === '2,2,2';
  });
}

/** Expands `0-5460` to numbers; skips a migrating slot, which is also listed in brackets. */
function slotsOf(range: string): number[] {
  if (range.startsWith('[')) return [];
  const [from, to = from] = range.split('-').map(Number);
  return Array.from({ length: to! - from! + 1 }, (_, index) => from! + index);
}

/** Returns the primaries that the first running node reports, in the order of their slots. */
export async function primaries(): Promise<Primary[]> {
  const running = await nodes();
  const containers = new Map(
    await Promise.all(running.map(async (container) => [await addressOf(container), container] as const)),
  );
  const lines = (await redisCli(running[0]!, 'cluster', 'nodes')).trim().split('\n');
  return lines
    .map((line) => line.trim().split(' '))
    .filter(([, , flags, , , , , , ...ranges]) => flags!.includes('master') && ranges.length > 0)
    .map(([id, address, , , , , , , ...ranges]) => ({
      id: id!,
      container: containers.get(address!.split(':')[0]!) ?? '',
      slots: ranges.flatMap(slotsOf),
    }))
    .toSorted((a, b) => a.slots[0]! - b.slots[0]!);
}

export const slotOf = async (container: string, key: string): Promise<number> =>
  Number(await redisCli(container, 'cluster', 'keyslot', key));

/** Moves the lowest slots of one primary to another, with their keys. */
export async function reshard(from: Primary, to: Primary, slots: number): Promise<void> {
  const ends = ['--cluster-from', from.id, '--cluster-to', to.id, '--cluster-slots', String(slots)];
  await redisCli(from.container, '--cluster', 'reshard', '127.0.0.1:6379', ...ends, '--cluster-yes');
}
