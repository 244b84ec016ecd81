import { createHook } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { createLogger } from '@content-platform/chassis';
import { createKafka } from './kafka.ts';
import { useStarted } from '../../test/support/use-started.ts';
import { createTestKafka } from './testing/kafka.ts';

const kafka = useStarted(createTestKafka);

test('KAFKA_SSL refuses a broker that speaks plain text', async () => {
  const settings = { KAFKA_BROKERS: kafka.brokers.split(','), KAFKA_SSL: true };
  const secure = createKafka(settings, 'test', createLogger('content-cache', 'silent'))!;
  await expect(secure.admin({ retry: { retries: 0 } }).connect()).rejects.toThrow();
});

test('a connection without requests sets no timers', async () => {
  await kafka.admin.listTopics();
  let timers = 0;
  // Tests that ran before in this process may have left timers of their own.
  const setByKafkajs = () => new Error().stack!.includes('kafkajs');
  const counter = createHook({
    init: (_id, type) => void (timers += Number(type === 'Timeout' && setByKafkajs())),
  });
  counter.enable();
  await sleep(500);
  counter.disable();
  expect(timers).toBeLessThan(10);
});
