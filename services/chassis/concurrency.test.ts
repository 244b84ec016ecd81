import { expect, test } from '@jest/globals';
import { createSemaphore, withTimeout } from './concurrency.ts';

/** Work that the test ends, and the maximum number of concurrent runs. */
function controlledWork() {
  const state = { running: 0, most: 0, ended: [] as number[] };
  const finish: (() => void)[] = [];
  const work = (number: number) => async () => {
    state.most = Math.max(state.most, ++state.running);
    await new Promise<void>((resolve) => finish.push(resolve));
    state.running -= 1;
    state.ended.push(number);
    if (number < 0) throw new Error('failed');
    return number;
  };
  async function finishAll() {
    do {
      finish.shift()?.();
      await new Promise(setImmediate);
    } while (state.running > 0);
  }
  return { state, work, finishAll };
}

test('runs at most max, queues maxWaiting in order and refuses the rest', async () => {
  const { run: limited } = createSemaphore(2, 3);
  const { state, work, finishAll } = controlledWork();
  const taken = [1, 2, 3, 4, 5].map((number) => limited(work(number)));
  await expect(limited(work(6))).rejects.toMatchObject({ status: 503, headers: { 'Retry-After': '1' } });
  await finishAll();
  expect(await Promise.all(taken)).toEqual([1, 2, 3, 4, 5]);
  expect(state.most).toBe(2);
  expect(state.ended).toEqual([1, 2, 3, 4, 5]);
});

test('frees the slot of failed work', async () => {
  const { run: limited } = createSemaphore(1, 2);
  const { state, work, finishAll } = controlledWork();
  const outcomes = Promise.allSettled([limited(work(-1)), limited(work(-2)), limited(work(3))]);
  await finishAll();
  expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
  const last = limited(work(4));
  await finishAll();
  expect(await last).toBe(4);
  expect(state.most).toBe(1);
});

test('an aborted wait leaves the queue', async () => {
  const slots = createSemaphore(1);
  const release = slots.tryAcquire()!;
  expect(slots.tryAcquire()).toBeUndefined();
  const leaver = new AbortController();
  const left = slots.acquire(leaver.signal);
  const next = slots.acquire();
  leaver.abort(new Error('left'));
  await expect(left).rejects.toThrow('left');
  release();
  // A second call must not free the slot of the next holder.
  release();
  const nextRelease = await next;
  expect(slots.tryAcquire()).toBeUndefined();
  nextRelease();
  expect(slots.tryAcquire()).toBeDefined();
  await expect(slots.acquire(AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
});

test('resolves and rejects as the work does, and with the fallback when the work hangs', async () => {
  expect(await withTimeout(Promise.resolve(1), 60_000, null)).toBe(1);
  await expect(withTimeout(Promise.reject(new Error('failed')), 60_000)).rejects.toThrow('failed');
  expect(await withTimeout(new Promise(() => undefined), 1, 'fallback')).toBe('fallback');
});
