import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { Kafka } from 'kafkajs';
import { createTestKafka, type TestKafka } from '../testing/kafka.ts';
import { createBroker } from './broker.ts';

let kafka: TestKafka;
beforeEach(async () => {
  kafka = await createTestKafka();
});
afterEach(() => kafka.close());

/** Kafka as it is, but that somebody else makes the topic between our look at the list and what we do then. */
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

test('a topic that was missing is new, whoever makes it then', async () => {
  let missing = 0;
  await createBroker(madeMeanwhile(), kafka.topic, kafka.group).ensureTopic(() => (missing += 1));
  expect(missing).toBe(1);
  expect(await kafka.admin.listTopics()).toContain(kafka.topic);
});

test('a topic that is there is left as it is', async () => {
  await kafka.makeTopic();
  let missing = 0;
  await createBroker(kafka.kafka, kafka.topic, kafka.group).ensureTopic(() => (missing += 1));
  expect(missing).toBe(0);
});
