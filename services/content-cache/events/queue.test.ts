import { expect, test } from '@jest/globals';
import { createLogger, createMetrics } from '@content-platform/chassis';
import { createCacheMetrics } from '../metrics.ts';
import { createQueue } from './queue.ts';

test("the queue's length is unknown while Kafka does not respond", async () => {
  const queue = createQueue({
    broker: { offsets: () => Promise.reject(new Error('no broker')) },
    metrics: createCacheMetrics(createMetrics('content-cache')),
    onOffsets: () => undefined,
    logger: createLogger('content-cache', 'silent'),
  });
  const next = queue.next();
  queue.start();
  expect(await next).toBeUndefined();
  queue.stop();
  expect(await queue.next()).toBeUndefined();
});
