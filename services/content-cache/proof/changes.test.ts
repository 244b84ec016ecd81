// Changes without an announcement become visible while processes are killed and while transactions stay open.
import { expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { until } from '../../../test/support/wait.ts';
import { closedAfterEach } from '../cache/testing/closed-after-each.ts';
import { createContentStore } from '../content-store.ts';
import { startKilledService } from '../testing/killed-service.ts';
import { startTestStores } from '../testing/test-stores.ts';

const isQuick = process.env['PROOF_QUICK'] !== undefined;
const records = 500;
const { cache: startCache, onEnd } = closedAfterEach();

/** Starts two processes of the service, a writer that announces nothing, and a reader that reads all records in turn. */
async function startRace() {
  const world = await startTestStores();
  onEnd(world.close);
  await world.sql(
    `INSERT INTO content.webform (id, title, body) SELECT n, 'Old', '{}' FROM generate_series(1, ${records}) AS n`,
  );
  const services = [1, 2].map(() =>
    startKilledService({ databaseUrl: world.databaseUrl, redisUrl: world.redis.url }, () => undefined),
  );
  onEnd(() => Promise.all(services.map((service) => service.stop())));
  const cache = await startCache(world.redis.url);
  const store = createContentStore(world.query);
  const ending = new AbortController();
  const committed = new Map<number, { version: number; at: number }[]>();
  const delays: number[] = [];

  async function readOne(id: number): Promise<void> {
    const startedAt = performance.now();
    const { record } = await cache.read('webform', id, 'full', () => store.load('webform', id, 'full'));
    const open = committed.get(id) ?? [];
    const seen = open.filter(({ version }) => version <= (record?.version ?? Infinity));
    for (const { at } of seen) delays.push(Math.max(0, startedAt - at));
    committed.set(
      id,
      open.filter((one) => !seen.includes(one)),
    );
  }
  async function readAll(): Promise<void> {
    for (let first = 1; first <= records; first += 20)
      await Promise.all(Array.from({ length: 20 }, (_, index) => readOne(first + index)));
    await sleep(20);
  }
  async function write(): Promise<void> {
    // One record, or many at once.
    const count = Math.random() < 0.02 ? 200 : 1;
    const first = 2 + Math.floor(Math.random() * (records - count));
    const text = `UPDATE content.webform SET title = 'New' WHERE id BETWEEN $1 AND $2 RETURNING id, version`;
    const rows = await world.sql<{ id: string; version: string }>(text, first, first + count - 1);
    const at = performance.now();
    for (const { id, version } of rows)
      committed.set(Number(id), [...(committed.get(Number(id)) ?? []), { version: Number(version), at }]);
    await sleep(20);
  }
  const loop = async (work: () => Promise<void>) => {
    while (!ending.signal.aborted) await work();
  };
  const running = [loop(readAll), loop(write)];
  const waiting = () => [...committed.values()].reduce((sum, open) => sum + open.length, 0);

  return {
    world,
    services,
    /** Kills a process `times` times, each `pauseMs` after the process before has started again. */
    async kill(processes: typeof services, times: number, pauseMs: number): Promise<void> {
      for (let kills = 0; kills < times; kills += 1) {
        await until('the processes are started', () => processes.every((one) => one.hasStarted()), 60_000);
        await sleep(pauseMs);
        await processes[kills % processes.length]!.killAndReplace();
      }
    },
    read: (id: number) => cache.read('webform', id, 'full', () => store.load('webform', id, 'full')),
    /** Ends the writer, waits until each change was read, and returns the sorted delays from commit to visibility in ms. */
    async end(): Promise<number[]> {
      ending.abort();
      await Promise.all(running);
      await until('each change is visible', () => readAll().then(() => waiting() === 0), 30_000);
      return delays.toSorted((a, b) => a - b);
    },
  };
}

function expectMedianBelow10s(what: string, delays: number[]): void {
  const at = (part: number) => Math.round(delays[Math.ceil(delays.length * part) - 1]!);
  console.info(`${what}: ${delays.length} changes, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`);
  expect(at(0.5)).toBeLessThan(10_000);
}

test('no change is skipped while processes are killed every 5 s', async () => {
  const race = await startRace();
  await race.kill(race.services, isQuick ? 4 : 24, 5_000);
  expectMedianBelow10s('one of two processes killed every 5 s', await race.end());
}, 600_000);

test('changes are visible soon after the restart of the only process', async () => {
  const race = await startRace();
  await race.services[1]!.stop();
  await race.kill(race.services.slice(0, 1), isQuick ? 2 : 8, 10_000);
  expectMedianBelow10s('the only process killed every 10 s', await race.end());
}, 600_000);

test('an open transaction delays its own changes only', async () => {
  const race = await startRace();
  const slow = new pg.Client(race.world.databaseUrl);
  await slow.connect();
  onEnd(() => slow.end());
  await slow.query(`BEGIN; UPDATE content.webform SET title = 'Late' WHERE id = 1`);
  await race.read(1);
  await sleep(isQuick ? 20_000 : 600_000);
  const delays = await race.end();
  expectMedianBelow10s('beside an open transaction', delays);
  expect((await race.read(1)).record!.version).toBe(1);
  await slow.query('COMMIT');
  await until('its change is visible', async () => (await race.read(1)).record!.version === 2);
}, 900_000);
