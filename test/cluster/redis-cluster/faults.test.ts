import { expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { cacheInvalidation } from '@content-platform/contract';
import { containersOf, docker, killFor, untilHealthy } from '../../compose/docker.ts';
import { kafkaClient } from '../../support/events.ts';
import { raceWhile } from '../../support/gateway-race.ts';
import { until } from '../../support/wait.ts';
import { restartEach } from '../containers.ts';
import { traffic } from '../../compose/races.ts';
import { expectNothingLost, useStack } from '../use-stack.ts';
import { isReplica, primaries } from './nodes.ts';

const balancer = useStack();

test('a killed primary is replaced by its replica and returns as a replica', async () => {
  const figures = await raceWhile(traffic, async () => {
    const old = (await primaries())[0]!;
    const owner = async () => (await primaries()).find(({ slots }) => slots.includes(old.slots[0]!))!.id;
    await docker(['kill', old.container]);
    await until('a replica has taken over', async () => (await owner()) !== old.id);
    await sleep(3_000);
    await docker(['start', old.container]);
    await untilHealthy(old.container);
    await until('it is back as a replica', () => isReplica(old.container));
    await sleep(3_000);
  });
  // Reads bypass the cache.
  await expectNothingLost('a primary killed', figures);
});

/** Returns the leader and the in-sync replicas of each partition of the topic. */
async function partitions() {
  const admin = kafkaClient().admin();
  await admin.connect();
  try {
    const { topics } = await admin.fetchTopicMetadata({ topics: [cacheInvalidation.topic] });
    return topics[0]!.partitions;
  } finally {
    await admin.disconnect();
  }
}

const isInSync = async () => (await partitions()).every(({ isr }) => isr.length === 3);

test('a broker that leads partitions is killed and returns', async () => {
  await until('every event is on three brokers', isInSync);
  const figures = await raceWhile(traffic, async () => {
    const { leader } = (await partitions())[0]!;
    const [broker] = await containersOf(leader === 1 ? 'kafka' : `kafka-${leader}`);
    await killFor(broker!, 10);
    await until('it has caught up', isInSync, 120_000);
    await sleep(3_000);
  });
  await expectNothingLost('a broker killed', figures);
});

test('no request fails while every process restarts in turn', async () => {
  const figures = await raceWhile(traffic, () => restartEach(balancer()));
  await expectNothingLost('every process restarted', figures);
  expect(figures.refused).toBe(0);
}, 400_000);
