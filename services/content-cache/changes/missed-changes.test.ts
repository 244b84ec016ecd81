import { expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLogger, createMetrics } from '@content-platform/chassis';
import { clearModel, clearPattern, type Model } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { until } from '../../../test/support/wait.ts';
import { createCacheMetrics } from '../metrics.ts';
import { read, useTestStores } from '../testing/test-stores.ts';
import { watchMissedChanges } from './missed-changes.ts';

const world = useTestStores();
/** An announcement may take 5 s after the clear. */
const soon = { intervalMs: 250, settleMs: 1_000, missedAfterMs: 5_000 };

test('records and counts an unannounced change, but no change that is announced late', async () => {
  const service = await world.service({ changes: soon });
  const token = service.token('cache:clear');
  async function clearUnannounced(model: Model, id: number): Promise<void> {
    await world.sql(`INSERT INTO content.${model} (id, title, body) VALUES ($1, 'One', '{}')`, id);
    await until('it is cached', async () => (await read(service, model, id)).cache === 'hit');
    await world.sql(`UPDATE content.${model} SET title = 'Two' WHERE id = $1`, id);
    await until('it is cleared', async () => (await read(service, model, id)).body!.title === 'Two');
  }
  // At the same time, because the first announcement must not come too late.
  await Promise.all([
    clearUnannounced('webform', 104),
    clearUnannounced('webform', 105),
    clearUnannounced('pathway', 106),
  ]);
  await call(service.url, clearModel, { token, body: { model: 'webform', id: 104 } });
  await call(service.url, clearPattern, { token, body: { pattern: 'pathway:*' } });
  const missed = () =>
    Promise.all(
      ['webform', 'pathway'].map((model) => service.metric(`invalidation_missed_total{model="${model}"}`)),
    );
  await until('the change of webform 105 is counted', async () => (await missed())[0] === 1);
  await sleep(soon.missedAfterMs);
  expect(await missed()).toEqual([1, 0]);
  // Writes the queued rows.
  await service.stop();
  const rows = await world.sql(`SELECT source FROM content.invalidation WHERE target = 'webform:105'`);
  expect(rows).toEqual([{ source: 'watch' }]);
});

test('a change whose announcement waits in Kafka, for the log or as a stored clear is not counted', async () => {
  const logClear = (id: number, secondsAgo: number) =>
    world.sql(
      `INSERT INTO content.invalidation (at, source, requested_by, target, keys_deleted)
       VALUES (now() - make_interval(secs => $2), 'kafka', 'topic/0/1', $1, 1)`,
      `webform:${id}`,
      secondsAgo,
    );
  const metrics = createCacheMetrics(createMetrics('content-cache'));
  let [isQueueEmpty, asked] = [false, 0];
  let written: Promise<unknown> = Promise.resolve();
  const missed = watchMissedChanges({
    query: async (...statement) => written.then(() => world.query<never>(...statement)),
    pending: { covered: () => Promise.resolve(new Set(['webform:107'])) },
    isQueueEmpty() {
      asked += 1;
      // The row of the last event is written up to a second after its clear.
      if (isQueueEmpty) setTimeout(() => void (written = logClear(109, 0)), 500);
      return Promise.resolve(isQueueEmpty);
    },
    metrics,
    logger: createLogger('content-cache', 'silent'),
    missedAfterMs: 0,
  });
  const counted = async () => (await metrics.missed.get()).values.find(({ value }) => value > 0)?.value;
  const change = { model: 'webform', version: 2, isDeleted: false, changedAt: new Date() } as const;
  // Found stale 3 s ago. The announcement of 110 was processed during the follower's clear.
  const found = new Date(Date.now() - 3_000);
  for (const id of [107, 108, 109, 110]) missed.add({ ...change, id }, found);
  await logClear(110, 2);
  await until('it has asked twice', () => asked > 1);
  expect(await counted()).toBeUndefined();
  isQueueEmpty = true;
  await until('one is counted', async () => (await counted()) === 1);
  await missed.stop();
});
