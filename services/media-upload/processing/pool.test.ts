import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { runInContext } from '@content-platform/chassis';
import { until } from '../../../test/support/wait.ts';
import * as corpus from '../testing/corpus.ts';
import { createFailingFork } from '../testing/failing-fork.ts';
import { createTestPool, type TestPool } from '../testing/pools.ts';
import { descendantsOf, isAlive } from '../../../test/support/processes.ts';
import { cpuMsOf, rssOf } from './proc.ts';
import type { PoolOptions } from './pool.ts';

const unruly = new URL('../testing/scripted-worker.ts', import.meta.url);
const pools: TestPool[] = [];
async function unrulyPool(options: Partial<PoolOptions> = {}): Promise<TestPool> {
  const pool = await createTestPool({ program: unruly, ...options });
  pools.push(pool);
  return pool;
}
afterEach(() => Promise.all(pools.splice(0).map((pool) => pool.close())));

const context = { route: '', database: { calls: 0, ms: 0 } };
const order = (pool: TestPool, text: string, signal?: AbortSignal) =>
  runInContext({ ...context, requestId: text }, () => pool.process(Buffer.from(text), signal));
const done = { kind: 'pdf', mime: expect.stringMatching(/^pid \d+$/) };
const unavailable = { status: 503, headers: { 'Retry-After': expect.stringMatching(/^\d+$/) } };
const { signal } = new AbortController();

async function pidOf(pool: TestPool): Promise<number> {
  const outcome = await order(pool, '0');
  return Number((outcome as { mime: string }).mime.slice(4));
}

test('keeps its worker process and gives it one job at a time', async () => {
  const pool = await unrulyPool({ size: 1 });
  const pid = await pidOf(pool);
  const same = { kind: 'pdf', mime: `pid ${pid}` };
  const outcomes = await Promise.all(['50', '50', '50'].map((text) => order(pool, text)));
  expect(outcomes).toEqual([same, same, same]);
});

test('refuses a file that crashes its worker process; other jobs continue', async () => {
  const pool = await unrulyPool({ size: 2 });
  const outcomes = await Promise.all(
    ['1000', 'crash', '10', '10', 'crash', '10'].map((text) => order(pool, text)),
  );
  const crashed = { kind: 'refused', refusal: 'unreadable_file' };
  expect(outcomes).toEqual([done, crashed, done, done, crashed, done]);
  const line = { signal: 'SIGSEGV', request_id: 'crash' };
  expect(pool.log).toMatchObject([line, line]);
});

test("a user's many jobs do not keep another user waiting for all of them", async () => {
  const pool = await unrulyPool({ size: 1 });
  const jobs = await Promise.all(Array.from({ length: 5 }, () => pool.jobOf(Buffer.from('50'))));
  const ended: number[] = [];
  const users = [1, 1, 1, 1, 2];
  await Promise.all(
    jobs.map(async (job, index) => {
      await pool.run(job, signal, users[index]);
      ended.push(users[index]!);
    }),
  );
  expect(ended).toEqual([1, 2, 1, 1, 1]);
});

test('ends the job or the wait of a client that disconnects', async () => {
  const pool = await unrulyPool({ size: 1, jobMs: 600_000 });
  const pid = await pidOf(pool);
  const [hang, quick] = [await pool.jobOf(Buffer.from('hang')), await pool.jobOf(Buffer.from('0'))];
  const [working, waiting] = [new AbortController(), new AbortController()];
  const worked = pool.run(hang, working.signal);
  const waited = pool.run(quick, waiting.signal);
  worked.catch(() => undefined);
  await turn();
  waiting.abort(new Error('left the queue'));
  await expect(waited).rejects.toThrow('left the queue');
  working.abort(new Error('left the job'));
  await expect(worked).rejects.toThrow('left the job');
  expect(isAlive(pid)).toBe(false);
  expect(await order(pool, '10')).toEqual(done);
});

test('returns 503 when too many jobs wait, in total or of one user, and when one waited too long', async () => {
  const pool = await unrulyPool({ size: 1, maxWaiting: 1, waitMs: 500, jobMs: 600_000 });
  const [hang, quick] = [await pool.jobOf(Buffer.from('hang')), await pool.jobOf(Buffer.from('0'))];
  const working = new AbortController();
  const first = pool.run(hang, working.signal, 1);
  first.catch(() => undefined);
  const ends: string[] = [];
  const refusal = (when: string, user: number) =>
    expect(pool.run(quick, signal, user).finally(() => ends.push(when))).rejects.toMatchObject(unavailable);
  await Promise.all([refusal('late', 2), refusal('at once', 3), refusal('late', 2), refusal('at once', 2)]);
  expect(ends).toEqual(['at once', 'at once', 'late', 'late']);
  working.abort(new Error('over'));
  await expect(first).rejects.toThrow('over');
  expect(await order(pool, '0')).toEqual(done);
});

describe('failures of the machine do not refuse the file', () => {
  test('replaces an idle worker process that was killed from outside', async () => {
    const pool = await unrulyPool({ size: 1 });
    process.kill(await pidOf(pool), 'SIGKILL');
    await until('the pool has noticed', () => pool.log.length > 0);
    await pool.check();
    expect(await order(pool, '0')).toEqual(done);
  });

  test('returns 503 when a worker process crashes before it is ready', async () => {
    const program = new URL('../testing/aborting-worker.ts', import.meta.url);
    const pool = await unrulyPool({ program });
    await expect(order(pool, '0')).rejects.toMatchObject(unavailable);
    await expect(pool.check()).rejects.toMatchObject(unavailable);
  });

  test('does not report an upload as damaged or unsupported if the disk cannot read it', async () => {
    const pool = await createTestPool({ size: 1 });
    pools.push(pool);
    const job = await pool.jobOf(corpus.pdf);
    const outcome = await pool.run({ ...job, path: job.folder }, new AbortController().signal);
    expect(outcome).toEqual({ kind: 'failed', message: expect.stringContaining('EISDIR') });
  });

  test.each(['event', 'throw'] as const)(
    'returns 503, recovers and closes when worker processes fail to start (%s)',
    async (failure) => {
      const { state, fork } = createFailingFork(failure);
      const pool = await unrulyPool({ size: 2, startProcess: fork });
      await expect(pool.check()).rejects.toMatchObject({ status: 503 });
      state.failure = undefined;
      await pool.check();
      expect(await order(pool, '0')).toEqual(done);
      const failing = createFailingFork(failure);
      await (await createTestPool({ program: unruly, startProcess: failing.fork })).close();
    },
  );

  test('responds, limits the number of processes and closes when the kernel does not end a killed process', async () => {
    const started: ChildProcess[] = [];
    const startProcess = ((program: URL, options: object) => {
      const child = fork(program, options);
      started.push(child);
      // A process that waits for a stalled disk ends only when the disk answers.
      child.kill = () => true;
      return child;
    }) as typeof fork;
    const pool = await unrulyPool({ size: 1, jobMs: 900, startProcess, usage: { rssOf, cpuMsOf: () => 0 } });
    try {
      for (let count = 0; count < 4; count += 1)
        await expect(order(pool, 'hang')).rejects.toMatchObject(unavailable);
      expect(started).toHaveLength(2);
      await expect(pool.check()).rejects.toMatchObject({ status: 503 });
      await pool.close();
    } finally {
      for (const { pid } of started) process.kill(pid!, 'SIGKILL');
    }
  });
});

describe('a job that takes too long', () => {
  const jobMs = 500;
  test.each([
    [
      'refuses the file as too costly if it used a core all the time',
      1,
      { kind: 'refused', refusal: 'image_too_costly' },
    ],
    ['returns 503 if it had a core for half of the time', 0.5, unavailable],
    ['returns 503 if it used no core, as with a stalled disk', 0, unavailable],
  ])('%s', async (_, share, expected) => {
    let reads = 0;
    const usage = { rssOf, cpuMsOf: () => (reads += 1) * share * jobMs };
    const pool = await unrulyPool({ size: 1, jobMs, usage });
    expect(await order(pool, 'hang').catch((error: unknown) => error)).toMatchObject(expected);
  });
});

// Reads CPU time and memory of a process from /proc.
if (existsSync('/proc/self/status')) {
  test('reads the CPU time that a process has used', () => {
    const before = cpuMsOf(process.pid);
    const from = process.cpuUsage();
    while (process.cpuUsage(from).user < 300_000);
    expect(cpuMsOf(process.pid) - before).toBeGreaterThanOrEqual(200);
  });

  test('refuses a file that uses too much memory by itself', async () => {
    // The memory of this process depends on the earlier tests.
    const usage = { cpuMsOf, rssOf: (pid: number) => (pid === process.pid ? 0 : rssOf(pid)) };
    const pool = await unrulyPool({ size: 2, maxBytes: 300 * 2 ** 20, jobMs: 600_000, usage });
    expect(await order(pool, 'fill 400')).toEqual({ kind: 'refused', refusal: 'image_too_costly' });
    expect(await order(pool, '0')).toEqual(done);
  });
}

test('runs the youngest job again when two together use too much memory', async () => {
  const usage = { cpuMsOf, rssOf: (pid: number) => (pid === process.pid ? 0 : 60) };
  const [start, onDone] = [jest.fn(fork), jest.fn()];
  const pool = await unrulyPool({ size: 2, maxBytes: 100, usage, startProcess: start as never, onDone });
  const jobs = [await pool.jobOf(Buffer.from('1000')), await pool.jobOf(Buffer.from('1000'))];
  const outcomes = await Promise.all(jobs.map((job) => pool.run(job, signal)));
  // The oldest job has the process that was started last, the youngest then a new one.
  const [, ...pids] = start.mock.results.map(({ value }) => (value as ChildProcess).pid);
  expect(outcomes).toEqual(pids.map((pid) => ({ kind: 'pdf', mime: `pid ${pid}` })));
  expect(onDone).toHaveBeenCalledTimes(2);
});

test('ends its worker processes when it is closed', async () => {
  const pool = await createTestPool({ program: unruly, size: 2 });
  const pid = await pidOf(pool);
  await pool.close();
  expect(isAlive(pid)).toBe(false);
  expect(pool.log).toEqual([]);
});

describe('worker processes never outlive a parent that is killed', () => {
  const main = new URL('../testing/pool-process.ts', import.meta.url).pathname;
  const worker = new URL('worker.ts', import.meta.url);

  test.each([
    ['during an encode', worker, 'image', ''],
    ['during native code that never returns', unruly, 'native', ''],
    ['while they load, with a job that never ends', unruly, 'busy', 'loading'],
  ])('%s', async (_, program, upload, when) => {
    // It makes the job's folder and needs no worker process.
    const pool = await unrulyPool({ size: 0 });
    const bytes = upload === 'image' ? corpus.blackPng(5_712, 4_284) : Buffer.from(upload);
    const { path } = await pool.jobOf(bytes);
    const options = { stdio: ['ignore' as const, 'pipe' as const, 'inherit' as const] };
    const parent = spawn(process.execPath, [main, path, program.href, when], options);
    await once(parent.stdout!, 'data');
    const workers = descendantsOf(parent.pid!);
    expect(workers).toHaveLength(2);
    if (when !== 'loading') {
      // Ctrl-C and the container's stop signal reach worker processes, too, but only the parent ends them.
      for (const signal of ['SIGINT', 'SIGTERM'] as const)
        for (const pid of workers) process.kill(pid, signal);
      expect(descendantsOf(parent.pid!)).toEqual(workers);
    }
    parent.kill('SIGKILL');
    await until('the worker processes are gone', () => !workers.some(isAlive), 60_000);
  });
});
