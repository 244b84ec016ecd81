import { expect, test } from '@jest/globals';
import { Kafka, logLevel } from 'kafkajs';
import { setTimeout as sleep } from 'node:timers/promises';
import { cacheInvalidation } from '@content-platform/contract';
import { containersOf, docker, untilHealthy } from '../../compose/docker.ts';
import { raceWhile } from '../../support/gateway-race.ts';
import { stack } from '../../support/stack.ts';
import { until } from '../../support/wait.ts';
import { killFor, restartEach } from '../containers.ts';
import { isReplica, keysOf } from '../redis-cli.ts';
import { expectNothingOld, traffic, useStack } from '../use-stack.ts';
import { type Primary, primaries, reshard, slotOf } from './nodes.ts';

const balancer = useStack();

/** Returns the slots of a primary that contain the race's records, ascending. */
async function usedSlots({ container }: Primary): Promise<number[]> {
  const keys = await keysOf(container, 'condition:*');
  return (await Promise.all(keys.map((key) => slotOf(container, key)))).toSorted((a, b) => a - b);
}

const ownerOf = async (slot: number): Promise<string> =>
  (await primaries()).find(({ slots }) => slots.includes(slot))!.id;

test('a killed primary is replaced by its replica and returns as a replica', async () => {
  const figures = await raceWhile(traffic, async () => {
    const [old, slot] = await until('a primary holds a record', async () => {
      for (const one of await primaries()) {
        const [used] = await usedSlots(one);
        if (used !== undefined) return [one, used] as const;
      }
      return undefined;
    });
    await docker(['kill', old.container]);
    await until('a replica has taken over', async () => (await ownerOf(slot)) !== old.id);
    await sleep(3_000);
    await docker(['start', old.container]);
    await untilHealthy(old.container);
    await until('it is back as a replica', () => isReplica(old.container));
    await sleep(3_000);
  });
  // Reads bypass the cache.
  await expectNothingOld('a primary killed', figures);
});

test('slots with records move to another primary and back', async () => {
  const figures = await raceWhile(traffic, async () => {
    const [from, to, slot] = await until('a primary holds a record', async () => {
      // The lowest slots move to a primary with higher slots, so that they can move back as its lowest.
      const [first, second, third] = await primaries();
      const [a, b] = await Promise.all([usedSlots(first!), usedSlots(second!)]);
      if (a[0] === undefined || b[0] === undefined) return undefined;
      const isFirst = first!.slots.indexOf(a[0]) < second!.slots.indexOf(b[0]);
      return isFirst ? ([first!, second!, a[0]] as const) : ([second!, third!, b[0]] as const);
    });
    const count = from.slots.indexOf(slot) + 1;
    console.log(`${count} slots move`);
    await reshard(from, to, count);
    expect(await ownerOf(slot)).toBe(to.id);
    await sleep(2_000);
    await reshard(to, from, count);
    expect(await ownerOf(slot)).toBe(from.id);
    await sleep(2_000);
  });
  await expectNothingOld('slots moved', figures);
});

/** Returns the leader and the in-sync replicas of each partition of the topic. */
async function partitions() {
  const kafka = new Kafka({ brokers: stack().kafka!.split(','), logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
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
  await expectNothingOld('a broker killed', figures);
});

test('no request fails while every process restarts in turn', async () => {
  const figures = await raceWhile(traffic, () => restartEach(balancer()));
  await expectNothingOld('every process restarted', figures);
  expect(figures.refused).toBe(0);
}, 400_000);
