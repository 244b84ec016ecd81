import { once } from 'node:events';
import type { ChildProcess } from 'node:child_process';
import { Kafka, logLevel, type Admin, type Producer } from 'kafkajs';
import { cacheInvalidation } from '@content-platform/contract';
import { freeRow } from '../../../deploy/local/ports.ts';
import { startRedis, type RedisServer } from '../../support/redis-server.ts';
import { until } from '../../support/wait.ts';
import { cpuOf } from '../cpu.ts';
import { startNode } from '../gateway/processes.ts';
import { createToken } from '../gateway/token.ts';
import { isWell, issuer, startContentCache, startGateway } from '../own-services.ts';
import { redisPid } from '../redis-figures.ts';
import type { Stores } from '../stores.ts';

/** sweep: a clear also looks for other programs' keys; none: there are none. */
export type UnmanagedKeys = 'sweep' | 'none';

/** CPU of each process, in µs. `load` is this one: it sends, and hears of what was cleared. */
export type Cpu = Record<'gateway' | 'contentCache' | 'redis' | 'postgres' | 'kafka' | 'load', number>;

export interface Ground {
  gateway: string;
  /** A Node server that answers whatever it is asked. */
  bare: string;
  headers: Record<string, string>;
  redis: RedisServer;
  producer: Producer;
  admin: Admin;
  /** Starts content-cache; it may not run. Resolves at once, unless `untilWell`. */
  start(unmanagedKeys: UnmanagedKeys, untilWell: boolean): Promise<void>;
  /** Ends it; it leaves the group. */
  end(): Promise<void>;
  cpu(): Cpu;
  close(): Promise<void>;
}

/** A gateway, one content-cache that is started when it is wanted, and what they stand on. */
export async function prepare(stores: Stores): Promise<Ground> {
  const { token, keySet } = createToken(issuer, 'cache:clear');
  const [redis, limits] = await Promise.all([startRedis(), startRedis()]);
  const [authPort, gatewayPort, port] = [await freeRow(1), await freeRow(1), await freeRow(1)];
  const auth = `http://127.0.0.1:${authPort}`;
  startNode('test/bench/gateway/upstream.ts', { PORT: String(authPort), KEY_SET: keySet }, process.execArgv);
  const contentCache = `http://127.0.0.1:${port}`;
  const gateway = startGateway(gatewayPort, { upstream: auth, redis: limits.url, contentCache });

  const client = new Kafka({ clientId: 'bench', brokers: [stores.kafka], logLevel: logLevel.NOTHING });
  const [producer, admin] = [client.producer({ allowAutoTopicCreation: false }), client.admin()];
  await Promise.all([producer.connect(), admin.connect()]);
  const redisProcess = await redisPid(redis.admin);
  let service: ChildProcess | undefined;

  return {
    gateway: `http://127.0.0.1:${gatewayPort}`,
    bare: auth,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    redis,
    producer,
    admin,
    async start(unmanagedKeys, untilWell) {
      const around = {
        auth,
        postgres: stores.postgres,
        logs: stores.logs,
        redis: redis.url,
        kafka: stores.kafka,
      };
      service = startContentCache(port, around, { CACHE_UNMANAGED_KEYS: unmanagedKeys });
      if (untilWell) await until('content-cache is well', () => isWell(port));
    },
    async end() {
      const ended = once(service!, 'exit');
      service!.kill('SIGINT');
      await ended;
      service = undefined;
    },
    cpu() {
      const { user, system } = process.cpuUsage();
      return {
        gateway: cpuOf(gateway.pid!),
        contentCache: service ? cpuOf(service.pid!) : 0,
        redis: cpuOf(redisProcess),
        postgres: cpuOf(stores.pids.postgres),
        kafka: cpuOf(stores.pids.kafka),
        load: user + system,
      };
    },
    async close() {
      await Promise.all([producer.disconnect(), admin.disconnect()]);
      await Promise.all([redis.stop(), limits.stop()]);
    },
  };
}

/** What each took between two moments, for one of `count`, in µs. */
export function cpuEach(before: Cpu, after: Cpu, count: number): Cpu {
  const names = Object.keys(before) as (keyof Cpu)[];
  return Object.fromEntries(names.map((name) => [name, (after[name] - before[name]) / count])) as Cpu;
}

/** Whether every event on the topic is committed. */
export async function isCommitted(admin: Admin): Promise<boolean> {
  const { topic, group } = cacheInvalidation;
  const [found] = await admin.fetchOffsets({ groupId: group, topics: [topic] });
  const committed = new Map(found!.partitions.map(({ partition, offset }) => [partition, offset]));
  const ends = await admin.fetchTopicOffsets(topic);
  return ends.every(({ partition, high }) => committed.get(partition) === high);
}
