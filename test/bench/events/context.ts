import { once } from 'node:events';
import type { ChildProcess } from 'node:child_process';
import { Kafka, logLevel } from 'kafkajs';
import { freeRow } from '../../support/ports.ts';
import { startRedis } from '../../support/redis-server.ts';
import { until } from '../../support/wait.ts';
import { startAuth } from '../gateway/auth.ts';
import { isReady, startContentCache, startGateway } from '../own-services.ts';
import type { Stores } from '../stores.ts';

/** sweep: a clear also deletes keys of other programs; none: such keys do not exist. */
export type UnmanagedKeys = 'sweep' | 'none';

/** Starts a gateway and the stores; content-cache is started by start(). */
export async function prepare(stores: Stores) {
  const auth = await startAuth('cache:clear');
  const [redis, limits] = await Promise.all([startRedis(), startRedis()]);
  const [gatewayPort, port] = [await freeRow(1), await freeRow(1)];
  const contentCache = `http://127.0.0.1:${port}`;
  startGateway(gatewayPort, { upstream: auth.url, redis: limits.url, contentCache });

  const client = new Kafka({ clientId: 'bench', brokers: [stores.kafka], logLevel: logLevel.NOTHING });
  const producer = client.producer({ allowAutoTopicCreation: false });
  await producer.connect();
  let service: ChildProcess | undefined;

  return {
    gateway: `http://127.0.0.1:${gatewayPort}`,
    /** URL of a Node server that answers every request. */
    bare: auth.url,
    headers: { ...auth.headers, 'content-type': 'application/json' },
    redis,
    producer,
    /** Starts content-cache, which must not be running. With `untilReady`, resolves when it is ready. */
    async start(unmanagedKeys: UnmanagedKeys, untilReady: boolean): Promise<void> {
      const { postgres, logs, kafka } = stores;
      const addresses = { auth: auth.url, postgres, logs, redis: redis.url, kafka };
      service = startContentCache(port, addresses, { CACHE_UNMANAGED_KEYS: unmanagedKeys });
      if (untilReady) await until('content-cache is ready', () => isReady(port));
    },
    /** Stops content-cache, which then leaves the consumer group. */
    async end(): Promise<void> {
      const ended = once(service!, 'exit');
      service!.kill('SIGINT');
      await ended;
      service = undefined;
    },
    async close(): Promise<void> {
      await Promise.all([producer.disconnect(), redis.stop(), limits.stop()]);
    },
  };
}
export type EventsContext = Awaited<ReturnType<typeof prepare>>;
