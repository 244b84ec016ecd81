import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { tokenOf } from '../support/accounts.ts';
import { closeEvents } from '../support/events.ts';
import { raceWhile, type GatewayRaceFigures } from '../support/gateway-race.ts';
import { closeRecords } from '../support/records.ts';
import { isWell, stack } from '../support/stack.ts';
import { until } from '../support/wait.ts';
import { compose, containersOf, docker, untilHealthy, writeStack } from './docker.ts';

/** Traffic while containers are killed and scaled: clients read, and a content server edits. */
const traffic = { readsPerSecond: 40, changesPerSecond: 3 };

beforeAll(async () => {
  await Promise.all((['user', 'machine'] as const).map((account) => tokenOf(stack().gateway, account)));
});
beforeEach(async () => {
  await writeStack();
  await until('all is well', isWell, 120_000);
});
afterAll(async () => {
  await closeEvents();
  await closeRecords();
});

const failed = ({ answers }: GatewayRaceFigures) =>
  Object.entries(answers).reduce((sum, [status, count]) => sum + (status === '200' ? 0 : count), 0);

/** Scales content-cache and letters; existing containers stay. */
const scale = (count: number) => {
  const services = ['content-cache', 'letters'];
  const counts = services.flatMap((name) => ['--scale', `${name}=${count}`]);
  return compose('up', '--detach', '--wait', '--no-deps', '--no-recreate', ...counts, ...services);
};

test('scaling, stopping and killing containers fails no other request', async () => {
  let whileStopping = 0;
  const figures = await raceWhile(traffic, async (seen) => {
    await scale(3);
    await sleep(3_000);
    const [first, second] = await containersOf('content-cache');
    const before = failed(seen);
    await docker(['stop', first!]);
    await docker(['start', first!]);
    await untilHealthy(first!);
    whileStopping = failed(seen) - before;
    await docker(['kill', second!]);
    await sleep(5_000);
    await scale(1);
  });
  console.log('scaled, one stopped, one killed', JSON.stringify(figures));
  expect(figures).toMatchObject({ stale: [], lost: [] });
  expect(whileStopping).toBe(0);
  // Requests in progress in the killed container fail; no others may.
  expect(failed(figures)).toBeLessThanOrEqual(traffic.readsPerSecond / 10);
  expect(figures.clears).toBeGreaterThan(20);
});

test.each([
  // Reads bypass the cache.
  ['redis', { mayFail: false }],
  // Events wait in the content server.
  ['kafka', { mayFail: false }],
  // Uncached records cannot be read.
  ['postgres', { mayFail: true }],
  ['content-cache', { mayFail: true }],
])(
  '%s is killed and comes back: nothing old is read, and no change is lost',
  async (service, { mayFail }) => {
    const figures = await raceWhile(traffic, async () => {
      await sleep(2_000);
      await compose('kill', service);
      await sleep(5_000);
      await compose('up', '--detach', '--wait', '--no-deps', '--no-recreate', service);
      await writeStack();
      await sleep(2_000);
    });
    console.log(`${service} killed`, JSON.stringify(figures));
    expect(figures).toMatchObject({ stale: [], lost: [] });
    if (!mayFail) expect(failed(figures)).toBe(0);
    await until('all is well', isWell, 120_000);
  },
);

/** Returns each container's peak memory during a period and its limit, in MiB. */
async function memoryDuring(seconds: number): Promise<Map<string, { most: number; limit: number }>> {
  const seen = new Map<string, { most: number; limit: number }>();
  for (const end = performance.now() + seconds * 1_000; performance.now() < end;) {
    const lines = await docker(['stats', '--no-stream', '--format', '{{.Name}} {{.MemUsage}}']);
    for (const line of lines.split('\n')) {
      const [, name, used, limit] = /^\S*?-([a-z][a-z-]*)-\d+ ([\d.]+)MiB \/ (\S+)$/.exec(line) ?? [];
      if (!name) continue;
      const most = Math.max(Number(used), seen.get(name)?.most ?? 0);
      seen.set(name, {
        most,
        limit: limit!.endsWith('GiB') ? parseFloat(limit!) * 1024 : parseFloat(limit!),
      });
    }
  }
  return seen;
}

test('under load every container stays well below its memory limit', async () => {
  let memory = new Map<string, { most: number; limit: number }>();
  const figures = await raceWhile({ readsPerSecond: 150, changesPerSecond: 10 }, async () => {
    memory = await memoryDuring(40);
  });
  console.log('under load', JSON.stringify(figures));
  console.log('memory in MiB, the most and the limit:', Object.fromEntries(memory));
  expect(figures).toMatchObject({ stale: [], lost: [] });
  for (const [name, { most, limit }] of memory) expect([name, most < limit * 0.9]).toEqual([name, true]);
});
