import { startRedis, startSentinel, type RedisServer } from './redis-server.ts';
import { until } from './wait.ts';

export type Replication = Awaited<ReturnType<typeof startReplication>>;

const setName = 'main';

/** Makes `replica` follow `primary` and waits until it is in sync. */
export async function follow(replica: RedisServer, primary: RedisServer): Promise<void> {
  await replica.admin.replicaof('127.0.0.1', primary.port);
  await until('the replica is in sync', async () =>
    (await primary.admin.info('replication')).includes(`port=${replica.port},state=online`),
  );
}

/**
 * Starts a primary, the first of `servers`, with replicas. If it is silent for `downAfterMs`, three sentinels promote
 * one.
 */
export async function startReplication(
  replicas: number,
  { password, ...settings }: Record<string, string> = {},
  downAfterMs = 1_000,
) {
  const login = password ? { requirepass: password, masterauth: password } : {};
  const servers = await Promise.all(
    Array.from({ length: replicas + 1 }, () =>
      startRedis({ 'repl-diskless-sync-delay': '0', ...settings, ...login }, password),
    ),
  );
  const [first, ...others] = servers;
  await Promise.all(others.map((replica) => follow(replica, first!)));
  const lines = [
    `sentinel monitor ${setName} 127.0.0.1 ${first!.port} 2`,
    `sentinel down-after-milliseconds ${setName} ${downAfterMs}`,
    `sentinel failover-timeout ${setName} 5000`,
    ...(password ? [`sentinel auth-pass ${setName} ${password}`] : []),
  ];
  const sentinels = await Promise.all([1, 2, 3].map(() => startSentinel(lines)));
  await until('the sentinels know each other and the replicas', async () => {
    const known = await Promise.all(
      sentinels.map(({ admin }) => admin.call('SENTINEL', 'MASTER', setName) as Promise<string[]>),
    );
    const of = (reply: string[], field: string) => Number(reply[reply.indexOf(field) + 1]);
    return known.every((r) => of(r, 'num-other-sentinels') === 2 && of(r, 'num-slaves') === replicas);
  });
  const hosts = sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',');
  return {
    url: `redis-sentinel://${password ? `:${password}@` : ''}${hosts}/${setName}`,
    servers,
    sentinels,
    /** Returns the primary that the sentinels report. */
    async primary(): Promise<RedisServer> {
      const address = (await sentinels[0]!.admin.call(
        'SENTINEL',
        'GET-MASTER-ADDR-BY-NAME',
        setName,
      )) as string[];
      return servers.find(({ port }) => port === Number(address[1]))!;
    },
    async stop(): Promise<void> {
      for (const server of [...servers, ...sentinels]) server.resume();
      await Promise.all([...sentinels, ...servers].map((server) => server.stop()));
    },
  };
}
