import { once } from 'node:events';
import type { ChildProcess } from 'node:child_process';
import { Kafka, logLevel, type Producer } from 'kafkajs';
import { freeRow } from '../../support/ports.ts';
import { startRedis, type RedisServer } from '../../support/redis-server.ts';
import { until } from '../../support/wait.ts';
import { startAuth } from '../gateway/auth.ts';
import { isWell, startContentCache, startGateway } from '../own-services.ts';
import type { Stores } from '../stores.ts';

/** sweep: a clear also looks for other programs' keys; none: there are none. */
export type UnmanagedKeys = 'sweep' | 'none';

export interface Ground {
  gateway: string;
  /** A Node server that answers whatever it is asked. */
  bare: string;
  headers: Record<string, string>;
  redis: RedisServer;
  producer: Producer;
  /** Starts content-cache; it may not run. Resolves at once, unless `untilWell`. */
  start(unmanagedKeys: UnmanagedKeys, untilWell: boolean): Promise<void>;
  /** Ends it; it leaves the group. */
  end(): Promise<void>;
  close(): Promise<void>;
}

/** A gateway, one content-cache that is started when it is wanted, and what they stand on. */
export async function prepare(stores: Stores): Promise<Ground> {
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
    bare: auth.url,
    headers: { ...auth.headers, 'content-type': 'application/json' },
    redis,
    producer,
    async start(unmanagedKeys, untilWell) {
      const { postgres, logs, kafka } = stores;
      const around = { auth: auth.url, postgres, logs, redis: redis.url, kafka };
      service = startContentCache(port, around, { CACHE_UNMANAGED_KEYS: unmanagedKeys });
      if (untilWell) await until('content-cache is well', () => isWell(port));
    },
    async end() {
      const ended = once(service!, 'exit');
      service!.kill('SIGINT');
      await ended;
      service = undefined;
    },
    async close() {
      await Promise.all([producer.disconnect(), redis.stop(), limits.stop()]);
    },
  };
}
