import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { tokenOf } from '../support/accounts.ts';
import { raceWhile, type GatewayRaceFigures } from '../support/gateway-race.ts';
import { stack } from '../support/stack.ts';
import { compose, containersOf, docker, untilHealthy, up, writeStack } from './docker.ts';
import { closeAfterRaces, expectNothingOld, traffic, untilStackReady } from './races.ts';

beforeAll(async () => {
  await Promise.all((['user', 'machine'] as const).map((account) => tokenOf(stack().gateway, account)));
});
beforeEach(async () => {
  await writeStack();
  await untilStackReady();
});
closeAfterRaces();

const failed = ({ answers }: GatewayRaceFigures) =>
  Object.entries(answers).reduce((sum, [status, count]) => sum + (status === '200' ? 0 : count), 0);

/** Scales content-cache and letters; existing containers stay. */
const scale = (count: number) => {
  const services = ['content-cache', 'letters'];
  const counts = services.flatMap((name) => ['--scale', `${name}=${count}`]);
  return up(...counts, ...services);
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
  await expectNothingOld('scaled, one stopped, one killed', figures);
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
])('%s is killed and restarted: no read is stale, and no change is lost', async (service, { mayFail }) => {
  const figures = await raceWhile(traffic, async () => {
    await sleep(2_000);
    await compose('kill', service);
    await sleep(5_000);
    await up(service);
    await writeStack();
    await sleep(2_000);
  });
  await expectNothingOld(`${service} killed`, figures);
  if (!mayFail) expect(failed(figures)).toBe(0);
  await untilStackReady();
});

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
  await expectNothingOld('under load', figures);
  console.log('memory in MiB, the most and the limit:', Object.fromEntries(memory));
  for (const [name, { most, limit }] of memory) expect([name, most < limit * 0.9]).toEqual([name, true]);
});
