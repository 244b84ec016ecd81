import { beforeAll, expect, test } from '@jest/globals';
import { createLogger, createMetrics } from '@content-platform/chassis';
import { withDatabase } from '../../test/support/connections.ts';
import { CacheUnavailable, type CacheClearer } from './cache/index.ts';
import { eraseRequesters, type InvalidationLog } from './invalidation-log.ts';
import { createInvalidator } from './invalidator.ts';
import { createCacheMetrics } from './metrics.ts';
import { createPendingClears, type PendingClears } from './pending-clears.ts';
import { useTestStores } from './testing/test-stores.ts';

const world = useTestStores();
let pending: PendingClears;
beforeAll(async () => {
  const logger = createLogger('content-cache', 'silent');
  const metrics = createCacheMetrics(createMetrics('content-cache'));
  const invalidator = createInvalidator({ add: () => {} } as unknown as InvalidationLog, metrics);
  pending = createPendingClears(world.query, invalidator, logger);
});

const clearerWith = (clearRecord: CacheClearer['clearRecord']) => ({ clearRecord }) as CacheClearer;
const requester = { source: 'http', requestedBy: 'cms' } as const;
const count = async () => (await world.sql('SELECT FROM content.pending_clear')).length;

test('carries out a request that arrives during the clear of its target, although another row is locked', async () => {
  await pending.add('webform', [1, 2], requester);
  let clears = 0;
  const clearer = clearerWith(async () => {
    if ((clears += 1) === 1) await pending.add('webform', [1], requester);
    return 0;
  });
  await withDatabase(world.databaseUrl, async (other) => {
    await other.query('BEGIN; SELECT FROM content.pending_clear WHERE record_id = 2 FOR UPDATE');
    await pending.carryOut(clearer);
  });
  expect(clears).toBe(3);
  expect(await count()).toBe(1);
});

test('keeps clears that are refused again, and removes those on the next page', async () => {
  const refused = Array.from({ length: 500 }, (_, index) => index + 1);
  await pending.add('webform', [502, ...refused, 501], requester);
  const cleared: number[] = [];
  await pending.carryOutForPrimary(clearerWith(async (_, id) => cleared.push(id)));
  expect(cleared).toHaveLength(502);
  const clearer = clearerWith(async (_, id) => {
    if (id <= 500) throw new CacheUnavailable('unavailable');
    return 0;
  });
  await expect(pending.carryOut(clearer)).rejects.toThrow('unavailable');
  const rows = await world.sql('SELECT record_id::int AS id FROM content.pending_clear ORDER BY id');
  expect(rows.map(({ id }) => id)).toEqual(refused);
});

test('carries out a clear once although PostgreSQL refuses to remove its row', async () => {
  await world.sql(`TRUNCATE content.pending_clear;
    CREATE FUNCTION content.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'read-only'; END $$;
    CREATE TRIGGER refuse BEFORE DELETE ON content.pending_clear EXECUTE FUNCTION content.refuse()`);
  await pending.add('webform', [1], requester);
  const cleared: number[] = [];
  const clearer = clearerWith(async (_, id) => cleared.push(id));
  for (let second = 1; second <= 2; second += 1) await pending.carryOut(clearer);
  await world.sql('DROP FUNCTION content.refuse CASCADE');
  await pending.carryOut(clearer);
  expect([cleared, await count()]).toEqual([[1], 0]);
});

test('finds the records that stored clears cover, by id and by model', async () => {
  await pending.add('pathway', [1], requester);
  await pending.add('condition', [null], requester);
  const records = (['webform', 'pathway', 'condition'] as const).flatMap((model) =>
    [1, 2].map((id) => ({ model, id })),
  );
  expect(await pending.covered(records)).toEqual(new Set(['pathway:1', 'condition:1', 'condition:2']));
});

test('removes the ids of deleted users, and no others, from stored and from listed clears', async () => {
  await world.sql('TRUNCATE content.pending_clear');
  await pending.add('pathway', [1], { source: 'http', requestedBy: 'user:7' });
  await world.sql(
    `INSERT INTO content.invalidation (at, source, requested_by, target, keys_deleted)
     SELECT now(), 'http', by, 'accesscode:1', 0 FROM unnest(ARRAY['user:7', 'user:77', 'cms']) AS by`,
  );
  await eraseRequesters(world.query, [7, 8]);
  const left = `SELECT requested_by FROM content.pending_clear
    UNION ALL SELECT requested_by FROM content.invalidation`;
  const names = (await world.sql(left)).map((row) => row['requested_by']);
  expect(names.toSorted()).toEqual(['cms', 'user', 'user', 'user:77']);
});
