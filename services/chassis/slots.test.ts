import { expect, test } from '@jest/globals';
import { createSlots } from './slots.ts';

/** Work that ends when it is told to, and the most that ran at a time. */
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

test('so many run, so many wait in order, the rest is refused', async () => {
  const { run: limited } = createSlots(2, 3);
  const { state, work, finishAll } = controlledWork();
  const taken = [1, 2, 3, 4, 5].map((number) => limited(work(number)));
  await expect(limited(work(6))).rejects.toMatchObject({ status: 503, headers: { 'Retry-After': '1' } });
  await finishAll();
  expect(await Promise.all(taken)).toEqual([1, 2, 3, 4, 5]);
  expect(state.most).toBe(2);
  expect(state.ended).toEqual([1, 2, 3, 4, 5]);
});

test('work that fails gives its slot up', async () => {
  const { run: limited } = createSlots(1, 2);
  const { state, work, finishAll } = controlledWork();
  const outcomes = Promise.allSettled([limited(work(-1)), limited(work(-2)), limited(work(3))]);
  await finishAll();
  expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
  const last = limited(work(4));
  await finishAll();
  expect(await last).toBe(4);
  expect(state.most).toBe(1);
});

test('who gives up waiting keeps nobody from the slot', async () => {
  const slots = createSlots(1);
  const release = slots.take()!;
  expect(slots.take()).toBeUndefined();
  const leaver = new AbortController();
  const left = slots.wait(leaver.signal);
  const next = slots.wait();
  leaver.abort(new Error('left'));
  await expect(left).rejects.toThrow('left');
  release();
  // Called twice, it must not give up the slot of the one who came after.
  release();
  const nextRelease = await next;
  expect(slots.take()).toBeUndefined();
  nextRelease();
  expect(slots.take()).toBeDefined();
  await expect(slots.wait(AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
});
