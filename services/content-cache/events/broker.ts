import { setTimeout as sleep } from 'node:timers/promises';
import type { Admin, ITopicConfig, Kafka } from 'kafkajs';
import { withTimeout } from '@content-platform/chassis';
import { cacheInvalidation } from '@content-platform/contract';

export interface PartitionOffsets {
  partition: number;
  /** The next offset that the group will process; negative: none is committed. */
  committed: number;
  /** The oldest offset that the broker still has. */
  low: number;
  /** The offset of the next event. */
  high: number;
}

const closeMs = 1_000;
/** Limit for every partition of a new topic to get a leader. */
const leadersMs = 10_000;

function topicConfig(topic: string, brokers: number): ITopicConfig {
  const replicationFactor = Math.min(3, brokers);
  return {
    topic,
    numPartitions: cacheInvalidation.partitions,
    replicationFactor,
    configEntries: [
      { name: 'retention.ms', value: String(cacheInvalidation.retentionMs) },
      // If three or more brokers are up now, an acknowledged event survives the loss of one.
      { name: 'min.insync.replicas', value: replicationFactor === 3 ? '2' : '1' },
      // The broker decompresses every producer's events: kafkajs reads only gzip.
      { name: 'compression.type', value: 'uncompressed' },
    ],
  };
}

interface Connection {
  admin: Promise<Admin>;
  requests: Set<Promise<unknown>>;
}

export type Broker = ReturnType<typeof createBroker>;

/** Reads and creates the topic and reads the group's offsets. Connects when needed, and again after a failure. */
export function createBroker(kafka: Kafka, topic: string, group: string) {
  let connection: Connection | undefined;

  async function connect(): Promise<Admin> {
    const admin = kafka.admin({ retry: { retries: 2 } });
    await admin.connect();
    return admin;
  }

  /** Disconnects after the last request: for an open request kafkajs would connect again and stay connected. */
  async function disconnect({ admin, requests }: Connection): Promise<void> {
    await Promise.allSettled(requests);
    await admin.then((connected) => connected.disconnect()).catch(() => undefined);
  }

  async function use<T>(work: (admin: Admin) => Promise<T>): Promise<T> {
    const current = (connection ??= { admin: connect(), requests: new Set() });
    const request = current.admin.then(work);
    current.requests.add(request);
    try {
      return await request;
    } catch (error) {
      if (connection === current) connection = undefined;
      void disconnect(current);
      throw error;
    } finally {
      current.requests.delete(request);
    }
  }

  /** Resolves when every partition of the topic has a leader. Throws after `leadersMs`. */
  async function waitForLeaders(admin: Admin): Promise<void> {
    const end = performance.now() + leadersMs;
    while (performance.now() < end) {
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] }).catch(() => ({ topics: [] }));
      const partitions = topics.flatMap((found) => found.partitions);
      if (partitions.length > 0 && partitions.every(({ leader }) => leader >= 0)) return;
      await sleep(100);
    }
    throw new Error(`the topic ${topic} was created but has no leader`);
  }

  async function committed(admin: Admin): Promise<Map<number, number>> {
    const [found] = await admin.fetchOffsets({ groupId: group, topics: [topic] });
    return new Map(found?.partitions.map(({ partition, offset }) => [partition, Number(offset)]));
  }

  return {
    /** Creates the topic if it is missing, after calling `onMissing`. Resolves when the topic is usable. */
    async ensureTopic(onMissing: (brokers: number) => void): Promise<void> {
      // A new connection: kafkajs cannot create a topic that this connection knew before its deletion.
      const admin = await connect();
      try {
        if ((await admin.listTopics()).includes(topic)) return;
        const { brokers } = await admin.describeCluster();
        onMissing(brokers.length);
        // The waitForLeaders of kafkajs fails on a broker that does not know the topic yet.
        const topics = [topicConfig(topic, brokers.length)];
        await admin.createTopics({ waitForLeaders: false, topics });
        await waitForLeaders(admin);
      } finally {
        await admin.disconnect();
      }
    },

    committed: () => use(committed),

    /** Returns all partitions. Reads the committed offsets first, so that none is above an older `high`. */
    offsets: (): Promise<PartitionOffsets[]> =>
      use(async (admin) => {
        const positions = await committed(admin);
        const limits = await admin.fetchTopicOffsets(topic);
        return limits.map(({ partition, low, high }) => ({
          partition,
          committed: positions.get(partition) ?? -1,
          low: Number(low),
          high: Number(high),
        }));
      }),

    /** Resolves within a second, even if a request hangs. */
    async close(): Promise<void> {
      const last = connection;
      connection = undefined;
      if (last) await withTimeout(disconnect(last), closeMs);
    },
  };
}
