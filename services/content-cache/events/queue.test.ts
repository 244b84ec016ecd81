import { expect, test } from '@jest/globals';
import { createLogger, createMetrics } from '@content-platform/chassis';
import { until } from '../../../test/support/wait.ts';
import { createCacheMetrics } from '../metrics.ts';
import { watchQueue } from './queue.ts';

test('asks Kafka when called, not at the next measurement; rejects while Kafka does not respond', async () => {
  let answers = 0;
  const queue = watchQueue({
    broker: {
      offsets: async () => {
        answers += 1;
        if (answers > 3) throw new Error('no broker');
        return [{ partition: 0, committed: 1, low: 0, high: answers }];
      },
    },
    metrics: createCacheMetrics(createMetrics('content-cache')),
    onOffsets: () => undefined,
    logger: createLogger('content-cache', 'silent'),
  });
  await expect(queue.current()).rejects.toThrow('Kafka does not respond');
  await until('the queue was measured', queue.isMeasured);
  expect([await queue.current(), await queue.current()]).toEqual([1, 2]);
  await expect(queue.current()).rejects.toThrow('no broker');
  await queue.stop();
});
