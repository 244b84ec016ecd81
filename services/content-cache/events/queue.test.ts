import { expect, test } from '@jest/globals';
import { createLogger, createMetrics } from '@content-platform/chassis';
import { until } from '../../../test/support/wait.ts';
import { createCacheMetrics } from '../metrics.ts';
import { startConsumer } from './consumer.ts';
import { watchQueue } from './queue.ts';

test('replaces a consumer that crashed', async () => {
  let consumers = 0;
  const [done, error] = [() => Promise.resolve(), new Error('crashed')];
  const on = (event: string, tell: (crash: object) => void) =>
    event === 'crash' && setImmediate(tell, { payload: { error, restart: false } });
  const one = { events: { CRASH: 'crash' }, on, connect: done, subscribe: done, run: done, disconnect: done };
  const kafka = { consumer: () => (consumers += 1) && one };
  const logger = createLogger('content-cache', 'silent');
  const options = { kafka, broker: { ensureTopic: done }, sessionTimeoutMs: 5_000, logger };
  const consumer = startConsumer(options as never);
  await until('another consumer starts', () => consumers > 1);
  await consumer.stop();
});

test('counts the uncommitted events of the last measurement; rejects if Kafka does not respond', async () => {
  let answers = 0;
  const seen: object[] = [];
  const queue = watchQueue({
    broker: {
      offsets: async () => {
        answers += 1;
        if (answers > 3) throw new Error('no broker');
        return [{ partition: 0, committed: answers - 1, low: 0, high: answers + 1 }];
      },
    },
    metrics: createCacheMetrics(createMetrics('content-cache')),
    onOffsets: (offsets) => void seen.push(...offsets),
    logger: createLogger('content-cache', 'silent'),
  });
  await expect(queue.countRemaining()).rejects.toThrow('Kafka does not respond');
  await until('the queue was measured', queue.isMeasured);
  // The guard finds losses in them.
  expect(seen[0]).toEqual({ partition: 0, committed: 0, low: 0, high: 2 });
  expect([await queue.countRemaining(), await queue.countRemaining()]).toEqual([1, 0]);
  await expect(queue.countRemaining()).rejects.toThrow('no broker');
  await queue.stop();
});
