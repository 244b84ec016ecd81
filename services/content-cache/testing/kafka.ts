import { randomBytes } from 'node:crypto';
import type { Message } from 'kafkajs';
import { createLogger } from '@content-platform/chassis';
import { stack } from '../../../test/support/stack.ts';
import { until } from '../../../test/support/wait.ts';
import { createBroker } from '../events/broker.ts';
import { createKafka } from '../kafka.ts';

const logger = createLogger('content-cache', 'error');

export type TestKafka = Awaited<ReturnType<typeof createTestKafka>>;

/** Creates names for a topic and a group, by default on the stack's Kafka. The service or `makeTopic` creates the topic. */
export async function createTestKafka(brokers = stack().kafka) {
  if (!brokers) throw new Error('the stack has no Kafka');
  const kafka = createKafka({ KAFKA_BROKERS: brokers.split(','), KAFKA_SSL: false }, 'test', logger)!;
  const topic = `test-${randomBytes(6).toString('hex')}`;
  const group = `group-${topic}`;
  const admin = kafka.admin();
  const producer = kafka.producer({ allowAutoTopicCreation: false });
  const broker = createBroker(kafka, topic, group);
  await Promise.all([admin.connect(), producer.connect()]);

  async function offsets() {
    // The group's coordinator may still be loading.
    return until('the offsets can be read', () => broker.offsets());
  }

  return {
    brokers,
    kafka,
    topic,
    group,
    admin,
    makeTopic: () => broker.ensureTopic(() => undefined),
    async deleteTopic(): Promise<void> {
      await admin.deleteTopics({ topics: [topic] });
      await until('the topic is deleted', async () => !(await admin.listTopics()).includes(topic));
    },
    /** Deletes events of partition 0, as retention does. */
    async deleteEventsBefore(offset: number): Promise<void> {
      // kafkajs must know the topic.
      await admin.fetchTopicOffsets(topic);
      await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: String(offset) }] });
    },
    /** Sends to partition 0 unless `partition` says otherwise; strings are sent as UTF-8, objects as JSON. */
    async send(...messages: (Omit<Message, 'value'> & { value: unknown })[]): Promise<void> {
      await producer.send({
        topic,
        acks: -1,
        messages: messages.map(({ value, ...rest }) => {
          const raw = value === null || typeof value === 'string' || Buffer.isBuffer(value);
          return { partition: 0, ...rest, value: raw ? value : JSON.stringify(value) };
        }),
      });
    },
    offsets,
    /** Resolves with the offsets when every event is committed. */
    consumed: () =>
      until('every event is committed', async () => {
        const all = await offsets();
        return all.every(({ committed, high }) => committed === high) ? all : undefined;
      }),
    async members(): Promise<number> {
      const { groups } = await admin.describeGroups([group]);
      return groups[0]!.members.length;
    },
    async close(): Promise<void> {
      // kafkajs tries for 27 s to delete a topic that does not exist.
      const topics = await admin.listTopics().catch((): string[] => []);
      if (topics.includes(topic)) await admin.deleteTopics({ topics: [topic] }).catch(() => undefined);
      await admin.deleteGroups([group]).catch(() => undefined);
      await Promise.all([admin.disconnect(), producer.disconnect(), broker.close()]);
    },
  };
}
