import { containersOf, docker } from '../../compose/docker.ts';
import { until } from '../../support/wait.ts';

/** Runs redis-cli in a container; its environment contains the password. */
const redisCli = (container: string, ...args: string[]): Promise<string> =>
  docker(['exec', container, 'redis-cli', ...args]);

async function replicationOf(container: string, name: string): Promise<string | undefined> {
  return new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(await redisCli(container, 'info', 'replication'))?.[1];
}

/** Returns whether the server is a replica in sync with its primary. */
export async function isReplica(container: string): Promise<boolean> {
  return (await replicationOf(container, 'master_link_status')) === 'up';
}

/** Returns a container's IP address in the network of the stores. */
const addressOf = (container: string): Promise<string> =>
  docker(['inspect', '--format', '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}', container]);

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

/** Returns the primaries that the first running node reports, with their slots, in ascending order. */
export async function primaries() {
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
