import { expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { compose, containersOf, docker, untilHealthy } from '../../compose/docker.ts';
import { raceWhile } from '../../support/gateway-race.ts';
import { until } from '../../support/wait.ts';
import { restartEach } from '../containers.ts';
import { addressOf, isReplica, redisCli, replicationOf } from '../redis-cli.ts';
import { expectNothingOld, traffic, useStack } from '../use-stack.ts';

const balancer = useStack();

/** Returns the container that the sentinels report as primary. */
async function primary(): Promise<string> {
  const [sentinel] = await containersOf('sentinel');
  const asked = ['-p', '26379', 'sentinel', 'get-master-addr-by-name', 'platform'];
  const [address] = (await redisCli(sentinel!, ...asked)).split('\n');
  const servers = [...(await containersOf('redis-primary')), ...(await containersOf('redis-replica'))];
  for (const server of servers) if ((await addressOf(server)) === address) return server;
  throw new Error(`no container that runs has ${address}`);
}

test('a killed primary is replaced by a replica and returns as a replica', async () => {
  const figures = await raceWhile(traffic, async () => {
    await sleep(2_000);
    const old = await primary();
    await docker(['kill', old]);
    const next = await until('a replica has taken over', primary);
    await until('it is one no more', async () => (await replicationOf(next, 'role')) === 'master');
    await sleep(3_000);
    await docker(['start', old]);
    await untilHealthy(old);
    await until('it is back as a replica', () => isReplica(old));
    await sleep(3_000);
  });
  // Reads bypass the cache.
  await expectNothingOld('the primary killed', figures);
});

test('no request fails while every process restarts in turn', async () => {
  const figures = await raceWhile(traffic, () => restartEach(balancer()));
  await expectNothingOld('every process restarted', figures);
  expect(figures.refused).toBe(0);
}, 400_000);

// services/content-cache/cache/redis/*.test.ts creates a split by hand to show that a failover then restores cleared
// records.
test('logs one warning when neither the process nor Redis requires a replica', async () => {
  const setTo = async (count: number) =>
    redisCli(await primary(), 'config', 'set', 'min-replicas-to-write', String(count));
  await setTo(0);
  const run = ['run', '--detach', '--no-deps', '-e', 'CACHE_MIN_REPLICAS=0', 'content-cache'];
  const container = (await compose(...run)).split('\n').at(-1)!;
  try {
    const warnings = async () =>
      (await docker(['logs', container])).match(/set min-replicas-to-write .*/g) ?? [];
    await until('it has warned', async () => (await warnings()).length > 0);
    await sleep(3_000);
    expect(await warnings()).toEqual([
      expect.stringContaining(
        'set min-replicas-to-write of Redis and CACHE_MIN_REPLICAS to 1 (they are 0 and 0)',
      ),
    ]);
  } finally {
    await docker(['rm', '--force', container]);
    await setTo(1);
  }
});
