import { afterEach, describe, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../../test/support/wait.ts';
import * as corpus from '../testing/corpus.ts';
import { createTestPool, type TestPool } from '../testing/pools.ts';
import { descendantsOf, isAlive } from '../../../test/support/processes.ts';
import type { PoolOptions } from './pool.ts';

const worker = new URL('../testing/unruly-worker.ts', import.meta.url);
const pools: TestPool[] = [];
async function unrulyPool(options: Partial<PoolOptions> = {}): Promise<TestPool> {
  const pool = await createTestPool({ worker, ...options });
  pools.push(pool);
  return pool;
}
afterEach(() => Promise.all(pools.splice(0).map((pool) => pool.close())));

const order = (pool: TestPool, text: string, signal?: AbortSignal) => pool.process(Buffer.from(text), signal);
const done = { kind: 'pdf', mime: expect.stringMatching(/^pid \d+$/) };

async function pidOf(pool: TestPool): Promise<number> {
  const outcome = await order(pool, '0');
  return Number((outcome as { mime: string }).mime.slice(4));
}

test('children are kept, and each does one job at a time', async () => {
  const pool = await unrulyPool({ size: 1 });
  const pid = await pidOf(pool);
  const begun = performance.now();
  await Promise.all([order(pool, '200'), order(pool, '200'), order(pool, '200')]);
  expect(performance.now() - begun).toBeGreaterThan(595);
  expect(await pidOf(pool)).toBe(pid);
});

test('a child that crashes takes its own job along, and no other', async () => {
  const pool = await unrulyPool();
  const outcomes = await Promise.all(
    ['1000', 'crash', '10', '10', 'crash', '10'].map((text) => order(pool, text)),
  );
  const crashed = { kind: 'refused', refusal: 'unreadable_file' };
  expect(outcomes).toEqual([done, crashed, done, done, crashed, done]);
  expect(pool.log).toMatchObject([{ signal: 'SIGSEGV' }, { signal: 'SIGSEGV' }]);
});

test('a job that takes too long is ended', async () => {
  const pool = await unrulyPool({ size: 1, jobMs: 1_000 });
  const pid = await pidOf(pool);
  expect(await order(pool, 'hang')).toEqual({ kind: 'refused', refusal: 'image_too_costly' });
  expect(isAlive(pid)).toBe(false);
  expect(await order(pool, '10')).toEqual(done);
});

test('one that had a core for half of its time only is told to come again', async () => {
  const pool = await unrulyPool({ size: 1, jobMs: 2_000 });
  await expect(order(pool, 'starved')).rejects.toMatchObject({ status: 503 });
  expect(await order(pool, '10')).toEqual(done);
});

test('who has many jobs does not keep the others waiting for all of them', async () => {
  const pool = await unrulyPool({ size: 1 });
  const jobs = await Promise.all(Array.from({ length: 5 }, () => pool.jobOf(Buffer.from('300'))));
  const { signal } = new AbortController();
  const ended: number[] = [];
  const owners = [1, 1, 1, 1, 2];
  await Promise.all(
    jobs.map(async (job, index) => {
      await pool.run(job, signal, owners[index]);
      ended.push(owners[index]!);
    }),
  );
  expect(ended).toEqual([1, 2, 1, 1, 1]);
});

test('who hangs up ends its work, or its waiting', async () => {
  const pool = await unrulyPool({ size: 1, jobMs: 600_000 });
  const pid = await pidOf(pool);
  const [hang, quick] = [await pool.jobOf(Buffer.from('hang')), await pool.jobOf(Buffer.from('0'))];
  const [working, waiting] = [new AbortController(), new AbortController()];
  const worked = pool.run(hang, working.signal);
  const waited = pool.run(quick, waiting.signal);
  worked.catch(() => undefined);
  await turn();
  waiting.abort(new Error('gone'));
  await expect(waited).rejects.toThrow('gone');
  working.abort(new Error('gone, too'));
  await expect(worked).rejects.toThrow('gone, too');
  expect(isAlive(pid)).toBe(false);
  expect(await order(pool, '10')).toEqual(done);
});

test('too many: 503 at once; waiting too long: 503', async () => {
  const pool = await unrulyPool({ size: 1, maxWaiting: 1, waitMs: 500 });
  await pidOf(pool);
  const [long, quick] = [await pool.jobOf(Buffer.from('3000')), await pool.jobOf(Buffer.from('0'))];
  const { signal } = new AbortController();
  const first = pool.run(long, signal);
  const second = pool.run(quick, signal);
  second.catch(() => undefined);
  await turn();
  const busy = { status: 503, headers: { 'Retry-After': expect.any(String) } };
  await expect(pool.run(quick, signal)).rejects.toMatchObject(busy);
  await expect(second).rejects.toMatchObject(busy);
  expect(await first).toEqual(done);
  expect(await order(pool, '0')).toEqual(done);
});

test('a child that dies while it has nothing to do is replaced', async () => {
  const pool = await unrulyPool({ size: 1 });
  const pid = await pidOf(pool);
  process.kill(pid, 'SIGKILL');
  await until('it is noticed', () => pool.log.length > 0);
  expect(await order(pool, '0')).toEqual(done);
});

test('a child knows nothing of our environment', async () => {
  const pool = await unrulyPool({ size: 1 });
  expect(process.env['STACK_FILE']).toBeDefined();
  const { mime } = (await order(pool, 'environment')) as { mime: string };
  expect(mime.split(' ').filter((name) => !name.startsWith('NODE_CHANNEL_'))).toEqual([
    'MALLOC_ARENA_MAX',
    'MALLOC_MMAP_THRESHOLD_',
    'MALLOC_TRIM_THRESHOLD_',
  ]);
});

// Where there is no /proc, memory is not held.
if (existsSync('/proc/self/status')) {
  describe('all together take too much memory', () => {
    const poolWith = (size: number, megabytes: number) =>
      unrulyPool({ size, maxBytes: process.memoryUsage.rss() + megabytes * 2 ** 20 });

    test('the oldest job gets through, the youngest is done again, alone', async () => {
      const pool = await poolWith(2, 1_000);
      const first = order(pool, 'fill 600');
      await sleep(100);
      const second = order(pool, 'fill 600');
      expect(await Promise.all([first, second])).toEqual([done, done]);
      expect(pool.log.length).toBeGreaterThan(0);
      expect(await order(pool, '0')).toEqual(done);
    });

    test('one that is alone is too costly', async () => {
      // More than this process takes itself, which depends on what it has tested before: so the job has the larger half.
      const megabytes = Math.max(600, Math.ceil(process.memoryUsage.rss() / 2 ** 20) + 200);
      const pool = await poolWith(1, megabytes);
      const tooMuch = `fill ${megabytes + 400}`;
      expect(await order(pool, tooMuch)).toEqual({ kind: 'refused', refusal: 'image_too_costly' });
      expect(await order(pool, '0')).toEqual(done);
    });

    test('one that is alone and takes little is told to come again: others are to blame', async () => {
      const pool = await poolWith(1, 300);
      const ours = Buffer.alloc(1_000 * 2 ** 20, 1);
      await expect(order(pool, 'fill 10')).rejects.toMatchObject({ status: 503 });
      expect(ours.length).toBeGreaterThan(0);
    });

    test('a child that has nothing to do goes first', async () => {
      const pool = await poolWith(2, 1_000);
      const jobs = await Promise.all(
        ['fill 600', '1', 'fill 600'].map((text) => pool.jobOf(Buffer.from(text))),
      );
      const { signal } = new AbortController();
      expect(await pool.run(jobs[0]!, signal)).toEqual(done);
      // The child that is full now does the next job, too, and then has nothing to do.
      const both = jobs.slice(1).map((job) => pool.run(job, signal));
      expect(await Promise.all(both)).toEqual([done, done]);
    });
  });
}

test('closing ends the children', async () => {
  const pool = await createTestPool({ worker });
  const pid = await pidOf(pool);
  await pool.close();
  expect(isAlive(pid)).toBe(false);
  expect(pool.log).toEqual([]);
});

test('children never outlive their parent, not even in the middle of a picture', async () => {
  const bytes = await corpus.picture(5_700, 4_200).avif({ effort: 0, quality: 90 }).toBuffer();
  const pool = await createTestPool();
  pools.push(pool);
  const jobs = [await pool.jobOf(bytes), await pool.jobOf(bytes)];
  const begun = performance.now();
  await Promise.all(jobs.map((job) => pool.run(job, new AbortController().signal)));
  const whole = performance.now() - begun;

  const main = new URL('../testing/pool-process.ts', import.meta.url).pathname;
  const parent = spawn(process.execPath, [main, jobs[0]!.path], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(parent.stdout, 'data');
  const children = descendantsOf(parent.pid!);
  expect(children).toHaveLength(2);
  // As a Ctrl-C does, or what stops a container.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) for (const pid of children) process.kill(pid, signal);
  await sleep(whole / 10);
  expect(children.every(isAlive)).toBe(true);
  parent.kill('SIGKILL');
  const killed = performance.now();
  await until('they are gone', () => !children.some(isAlive), 60_000);
  expect(performance.now() - killed).toBeLessThan(whole / 2);
});
