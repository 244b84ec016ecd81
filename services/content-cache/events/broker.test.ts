import { expect, test } from '@jest/globals';
import type { Kafka } from 'kafkajs';
import { useStarted } from '../../../test/support/use-started.ts';
import { createTestKafka } from '../testing/kafka.ts';
import { createBroker } from './broker.ts';

const kafka = useStarted(createTestKafka);

/** A Kafka client for which another process creates the topic right after listTopics(). */
function madeMeanwhile(): Kafka {
  const admin = () => {
    const real = kafka.kafka.admin();
    async function listTopics(): Promise<string[]> {
      const before = await real.listTopics();
      await kafka.makeTopic();
      return before;
    }
    return { ...real, listTopics };
  };
  return { admin } as unknown as Kafka;
}

test('reports a missing topic as new even if another process creates it', async () => {
  let missing = 0;
  await createBroker(madeMeanwhile(), kafka.topic, kafka.group).ensureTopic(() => (missing += 1));
  expect(missing).toBe(1);
  expect(await kafka.admin.listTopics()).toContain(kafka.topic);
});
