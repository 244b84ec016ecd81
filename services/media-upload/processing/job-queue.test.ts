import { expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { createJobQueue } from './job-queue.ts';

const { signal } = new AbortController();
const unavailable = { status: 503, headers: { 'Retry-After': expect.any(String) } };
const never = () => Promise.reject(new Error('this attempt must not run'));
const crowded = () => Promise.resolve('crowded');

/** Returns a job with these attempts: the first beside other jobs, the second alone. */
function job(first: () => Promise<string>, alone: () => Promise<string>) {
  return (isAlone: boolean) => (isAlone ? alone() : first());
}

test('waits for its turn and for a slot within one time limit', async () => {
  const queue = createJobQueue({ size: 1, maxWaiting: 10, waitMs: 2_000 });
  const work = () => sleep(1_500, 'done');
  const first = queue.run(1, signal, job(work, never));
  const another = queue.run(2, signal, job(work, never));
  another.catch(() => undefined);
  // Its turn comes when `first` ends; the other user keeps the slot for longer than the limit.
  await expect(queue.run(1, signal, job(work, never))).rejects.toMatchObject(unavailable);
  expect(await first).toBe('done');
});

test('waits for all slots within one time limit for a crowded job, and releases them', async () => {
  const queue = createJobQueue({ size: 2, maxWaiting: 10, waitMs: 1_000 });
  const release = Promise.withResolvers<string>();
  const untilReleased = job(() => release.promise, never);
  const blocking = queue.run(1, signal, untilReleased);
  await expect(queue.run(2, signal, job(crowded, never))).rejects.toMatchObject(unavailable);
  expect(await queue.run(2, signal, async () => 'done')).toBe('done');
  release.resolve('done');
  expect(await blocking).toBe('done');
  const alone = async () => 'alone';
  expect(await queue.run(2, signal, job(crowded, alone))).toBe('alone');
});

test('throws 503 for a job that is crowded even when alone', async () => {
  const queue = createJobQueue({ size: 2, maxWaiting: 10, waitMs: 1_000 });
  await expect(queue.run(1, signal, crowded)).rejects.toMatchObject(unavailable);
});

test('releases the slot and the turn of an attempt that throws', async () => {
  const queue = createJobQueue({ size: 1, maxWaiting: 0, waitMs: 1_000 });
  const fail = () => Promise.reject(new Error('it failed'));
  for (let count = 0; count < 20; count += 1) {
    await expect(queue.run(1, signal, job(fail, never))).rejects.toThrow('it failed');
    await expect(queue.run(1, signal, job(crowded, fail))).rejects.toThrow('it failed');
  }
  expect(await queue.run(1, signal, async () => 'done')).toBe('done');
});
