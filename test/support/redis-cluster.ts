import { freePort } from '../../deploy/local/ports.ts';
import { startRedis } from './redis-server.ts';
import { until } from './wait.ts';

export type RedisCluster = Awaited<ReturnType<typeof startCluster>>;
export type ClusterMember = Awaited<ReturnType<typeof startNode>>;

const slotCount = 16_384;
/** Silence after which a replica takes over, in ms: 2 s longer than the lag that tests allow. */
const nodeTimeoutMs = 3_000;
export async function startCluster({
  primaries: count = 3,
  replicas: each = 1,
  settings = {} as Record<string, string>,
} = {}) {
  const nodes = await Promise.all(Array.from({ length: count * (1 + each) }, () => startNode(settings)));
  const [primaries, rest] = [nodes.slice(0, count), nodes.slice(count)];
  await Promise.all(
    primaries.map(({ admin }, index) => {
      const [from, to] = [index, index + 1].map((part) => Math.floor((slotCount * part) / count));
      return admin.cluster('ADDSLOTSRANGE', from!, to! - 1);
    }),
  );
  // Distinct epochs from the start; otherwise the nodes resolve conflicts later, during the test.
  for (const [index, { admin }] of nodes.entries())
    await admin.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
  for (const { port, busPort } of nodes.slice(1))
    await nodes[0]!.admin.call('CLUSTER', 'MEET', '127.0.0.1', port, busPort);
  await until('the nodes know each other', async () => {
    const views = await Promise.all(nodes.map(({ admin }) => admin.cluster('NODES') as Promise<string>));
    return views.every(
      (view) => view.trim().split('\n').length === nodes.length && !view.includes('handshake'),
    );
  });
  const replicas = primaries.map((_, index) => rest.slice(index * each, (index + 1) * each));
  await Promise.all(
    replicas.flatMap((group, index) =>
      group.map(({ admin }) => admin.cluster('REPLICATE', primaries[index]!.id)),
    ),
  );
  await until('every node is connected and the cluster is ok', async () => {
    const states = await Promise.all(nodes.map(({ admin }) => admin.cluster('INFO') as Promise<string>));
    const infos = await Promise.all(primaries.map(({ admin }) => admin.info('replication')));
    const online = infos.every((info) => [...info.matchAll(/state=online/g)].length === each);
    return online && states.every((state) => state.includes('cluster_state:ok'));
  });

  const slotOf = (key: string) => nodes[0]!.admin.cluster('KEYSLOT', key) as Promise<number>;
  /** Starts to migrate the slot with CLUSTER SETSLOT, without moving keys. */
  async function beginMove(slot: number, from: ClusterMember, to: ClusterMember): Promise<void> {
    await to.admin.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', from.id);
    await from.admin.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', to.id);
  }
  /** Moves the keys of the slot. Returns their number. */
  async function moveKeys(slot: number, from: ClusterMember, to: ClusterMember): Promise<number> {
    for (let moved = 0; ;) {
      const keys = (await from.admin.callBuffer('CLUSTER', 'GETKEYSINSLOT', slot, 100)) as Buffer[];
      if (keys.length === 0) return moved;
      const migrate = ['127.0.0.1', to.port, '', 0, 5000, 'REPLACE', 'KEYS', ...keys];
      // On a busy machine a replica may lag briefly; a primary with min-replicas-to-write then refuses.
      await until('the keys are moved', () => from.admin.call('MIGRATE', ...migrate));
      moved += keys.length;
    }
  }
  async function endMove(slot: number, from: ClusterMember, to: ClusterMember): Promise<void> {
    // The new owner first: until the others know, the old owner redirects their requests to the new one.
    await to.admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', to.id);
    await from.admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', to.id);
  }
  return {
    /** The cluster's REDIS_URL, with every node. */
    url: `redis-cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    /** The initial primaries, in the order of their slots. */
    primaries,
    /** The replicas: `replicas[1]` belong to `primaries[1]`. */
    replicas,
    slotOf,
    /** Returns the node that claims the slot of `key`. */
    async ownerOf(key: string): Promise<ClusterMember | undefined> {
      const slot = await slotOf(key);
      for (const node of nodes) {
        const view = await node.admin.cluster('NODES').catch(() => '');
        const own = String(view)
          .split('\n')
          .find((line) => line.includes('myself,master'));
        const ranges = own?.split(' ').slice(8) ?? [];
        const owns = ranges.some((range) => {
          const [from, to = from] = range.split('-').map(Number);
          return !range.startsWith('[') && from! <= slot && slot <= to!;
        });
        if (owns) return node;
      }
      return undefined;
    },
    beginMove,
    moveKeys,
    endMove,
    async move(slot: number, from: ClusterMember, to: ClusterMember): Promise<void> {
      await beginMove(slot, from, to);
      await moveKeys(slot, from, to);
      await endMove(slot, from, to);
    },
    async stop(): Promise<void> {
      for (const node of nodes) node.resume();
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

async function startNode(settings: Record<string, string>) {
  let busPort = 0;
  const server = await startRedis(async () => {
    busPort = await freePort();
    return {
      'cluster-enabled': 'yes',
      'cluster-port': String(busPort),
      'cluster-node-timeout': String(nodeTimeoutMs),
      'cluster-require-full-coverage': 'no',
      'cluster-replica-validity-factor': '0',
      'repl-diskless-sync-delay': '0',
      'repl-ping-replica-period': '1',
      ...settings,
    };
  });
  return { ...server, id: (await server.admin.cluster('MYID')) as string, busPort };
}
