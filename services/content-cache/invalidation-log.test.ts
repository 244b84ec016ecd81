import { afterEach, expect, jest, test } from '@jest/globals';
import { createLogger, type Database } from '@content-platform/chassis';
import { createInvalidationLog, type InvalidationLog } from './invalidation-log.ts';

const logger = createLogger('test', 'silent');
let log: InvalidationLog;
afterEach(() => log.close());

function start(insert: () => Promise<unknown>) {
  const query = jest.fn(insert);
  log = createInvalidationLog(query as unknown as Database['query'], logger);
  return query;
}

function add(count: number): void {
  for (let id = 1; id <= count; id += 1)
    log.add({ model: 'webform', id }, 1, { requestedBy: 'test', source: 'http' });
}

test('writes rows as soon as a hundred wait, again after a success', async () => {
  const query = start(() => Promise.resolve());
  for (let times = 1; times <= 3; times += 1) {
    add(99);
    expect(query).toHaveBeenCalledTimes(times - 1);
    add(1);
    expect(query).toHaveBeenCalledTimes(times);
    await new Promise(setImmediate);
  }
});

test('writes the queued rows when the process stops', async () => {
  const query = start(() => Promise.resolve());
  add(1);
  await log.close();
  expect(query).toHaveBeenCalledTimes(1);
});

test('does not retry once per clear while rows cannot be written', async () => {
  const query = start(() => Promise.reject(new Error('unavailable')));
  const began = performance.now();
  for (let round = 0; round < 300; round += 1) {
    add(100);
    await new Promise(setImmediate);
  }
  // One for the first hundred rows and for each thousand of a full queue, and one each second.
  expect(query.mock.calls.length).toBeLessThanOrEqual(12 + (performance.now() - began) / 1_000);
});
