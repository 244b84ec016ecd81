import { setTimeout as sleep } from 'node:timers/promises';
import type { Admin, ITopicConfig, Kafka } from 'kafkajs';
import { cacheInvalidation } from '@content-platform/contract';

/** Where a partition stands. */
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
/** The number that topics have among what has settings. kafkajs exports its names where Node does not see them. */
const topicResource = 2;

/** How the topic is made. */
function describeTopic(topic: string, brokers: number): ITopicConfig {
  const replicationFactor = Math.min(3, brokers);
  return {
    topic,
    numPartitions: cacheInvalidation.partitions,
    replicationFactor,
    configEntries: [
      { name: 'retention.ms', value: String(cacheInvalidation.retentionMs) },
      // An event that was acknowledged survives the loss of a broker.
      { name: 'min.insync.replicas', value: replicationFactor === 3 ? '2' : '1' },
      // Whatever a producer compresses with, the broker unpacks: kafkajs reads gzip alone.
      { name: 'compression.type', value: 'uncompressed' },
    ],
  };
}

/** A new topic is known to every broker within moments. Ms. */
const leadersMs = 10_000;

interface Connection {
  admin: Promise<Admin>;
  /** What is asked over it at the moment. */
  questions: Set<Promise<unknown>>;
}

export type Broker = ReturnType<typeof createBroker>;

/** What the brokers say of the topic and the group, over a connection that is made when it is needed, and again. */
export function createBroker(kafka: Kafka, topic: string, group: string) {
  let connection: Connection | undefined;

  async function connect(): Promise<Admin> {
    const admin = kafka.admin({ retry: { retries: 2 } });
    await admin.connect();
    return admin;
  }

  /** After its last question: for one that is open kafkajs would connect once more, and nobody would end that. */
  async function disconnect({ admin, questions }: Connection): Promise<void> {
    await Promise.allSettled(questions);
    await admin.then((made) => made.disconnect()).catch(() => undefined);
  }

  async function use<T>(work: (admin: Admin) => Promise<T>): Promise<T> {
    const current = (connection ??= { admin: connect(), questions: new Set() });
    const question = current.admin.then(work);
    current.questions.add(question);
    try {
      return await question;
    } catch (error) {
      if (connection === current) connection = undefined;
      void disconnect(current);
      throw error;
    } finally {
      current.questions.delete(question);
    }
  }

  /** Resolves when every partition of the topic has a leader; throws after `leadersMs`. */
  async function leaders(admin: Admin): Promise<void> {
    const end = performance.now() + leadersMs;
    while (performance.now() < end) {
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] }).catch(() => ({ topics: [] }));
      const partitions = topics.flatMap((found) => found.partitions);
      if (partitions.length > 0 && partitions.every(({ leader }) => leader >= 0)) return;
      await sleep(100);
    }
    throw new Error(`the topic ${topic} was made but has no leader`);
  }

  async function committed(admin: Admin): Promise<Map<number, number>> {
    const [found] = await admin.fetchOffsets({ groupId: group, topics: [topic] });
    return new Map(found?.partitions.map(({ partition, offset }) => [partition, Number(offset)]));
  }

  return {
    /** Makes the topic when it is missing, which it tells `onMissing` first, and resolves when it can be used. */
    async ensureTopic(onMissing: () => void): Promise<void> {
      // Not over the connection that is there: where it has seen a topic that is gone, kafkajs asks for it in vain.
      const admin = await connect();
      try {
        if ((await admin.listTopics()).includes(topic)) return;
        // Whoever makes it now: another process, or an attempt of ours whose answer was lost.
        onMissing();
        const { brokers } = await admin.describeCluster();
        // kafkajs waits for leaders, too, but gives up on a broker that has not heard of the topic yet.
        const topics = [describeTopic(topic, brokers.length)];
        await admin.createTopics({ waitForLeaders: false, topics });
        await leaders(admin);
      } finally {
        await admin.disconnect();
      }
    },

    /** The topic's `compression.type`. */
    compression: (): Promise<string | undefined> =>
      use(async (admin) => {
        const { resources } = await admin.describeConfigs({
          includeSynonyms: false,
          resources: [{ type: topicResource, name: topic, configNames: ['compression.type'] }],
        });
        return resources[0]?.configEntries[0]?.configValue;
      }),

    /** Committed offsets by partition. */
    committed: () => use(committed),

    /** All partitions. The committed offset is read first, so that it is never above a `high` from before it. */
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

    /** Resolves within a second, whatever is under way. */
    async close(): Promise<void> {
      const last = connection;
      connection = undefined;
      if (last) await Promise.race([disconnect(last), sleep(closeMs, undefined, { ref: false })]);
    },
  };
}
