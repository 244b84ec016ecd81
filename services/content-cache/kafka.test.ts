import { createHook } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createTestKafka, type TestKafka } from './testing/kafka.ts';

let kafka: TestKafka;
beforeEach(async () => void (kafka = await createTestKafka()));
afterEach(() => kafka.close());

test('a connection without requests sets no timers', async () => {
  await kafka.admin.listTopics();
  let timers = 0;
  const counter = createHook({ init: (_id, type) => void (timers += Number(type === 'Timeout')) }).enable();
  await sleep(500);
  counter.disable();
  // One is that of sleep().
  expect(timers).toBeLessThan(10);
});
