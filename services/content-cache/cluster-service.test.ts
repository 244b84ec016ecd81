import { expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { startCluster, type ClusterMember } from '../../test/support/redis-cluster.ts';
import { useStarted } from '../../test/support/use-started.ts';
import { until } from '../../test/support/wait.ts';
import { read, useTestStores } from './testing/test-stores.ts';

const world = useTestStores();
const cluster = useStarted(() => startCluster({ replicas: 0 }));

test('stores the clears of a lost primary, and carries them out on that primary before reads use it', async () => {
  const service = await world.service({ redisUrl: cluster.url, env: { CACHE_UNMANAGED_KEYS: 'none' } });
  await world.sql(
    `INSERT INTO content.record SELECT 'webform', id, 'Old', '{}' FROM generate_series(1, 20) AS id`,
  );
  const owners = new Map<ClusterMember, number>();
  for (let id = 1; id <= 20; id += 1) owners.set((await cluster.ownerOf(`webform:${id}`))!, id);
  const [[primary, lostId], [, keptId]] = [...owners] as [[ClusterMember, number], [ClusterMember, number]];
  for (const id of [lostId, keptId])
    await until('it is cached', async () => (await read(service, 'webform', id)).cache === 'hit');
  const token = service.token('cache:clear');
  const clear = (id: number) =>
    call(service.url, contract.clearModel, { body: { model: 'webform', id }, token });

  primary.pause();
  await until('the loss is detected', async () => !(await service.check('redis')));
  await world.sql(`UPDATE content.record SET title = 'New'`);
  expect((await clear(lostId)).status).toBe(503);
  expect((await clear(keptId)).status).toBe(200);
  // Clears and reads of the other primaries continue.
  expect((await read(service, 'webform', keptId)).body?.title).toBe('New');
  expect((await read(service, 'webform', keptId)).cache).toBe('hit');
  expect((await read(service, 'webform', lostId)).cache).toBe('bypass');
  expect(await world.sql('SELECT record_id FROM content.pending_clear')).toEqual([
    { record_id: String(lostId) },
  ]);

  // The primary still has the old entry under its current incarnation.
  primary.resume();
  const first = await until('it is used again', async () => {
    const { cache, body } = await read(service, 'webform', lostId);
    return cache !== 'bypass' && body;
  });
  expect(first.title).toBe('New');
  await until(
    'no pending clear is left',
    async () => (await world.sql('SELECT FROM content.pending_clear')).length === 0,
  );
  expect(await service.check('redis')).toBe(true);
  const lines = service.log.map(({ message }) => String(message));
  expect(lines.filter((line) => line.startsWith('Redis partly unreachable'))).not.toEqual([]);
});
