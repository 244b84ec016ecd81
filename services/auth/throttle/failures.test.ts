import { beforeEach, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type Backoff,
  createMemoryFailures,
  reserveAttempt,
  resetFailures,
  type UpdateFailures,
} from './failures.ts';

const backoff: Backoff = { windowMs: 20, shortestMs: 1, longestMs: 8 };
const subject = { key: 'a', limit: 3 };
const other = { key: 'b', limit: 1 };

let now = 0;
let update: UpdateFailures;
beforeEach(() => {
  now = 0;
  update = createMemoryFailures(() => now);
});

/** Counts a failure; returns the wait, 0 if the attempt was allowed. */
const fail = async (...subjects: (typeof subject)[]) =>
  (await reserveAttempt(update, subjects.length ? subjects : [subject], backoff)).waitMs;

async function failTimes(times: number): Promise<void> {
  for (let n = 0; n < times; n += 1) expect(await fail()).toBe(0);
}

async function attempt(limit = subject.limit) {
  const { waitMs, undo } = await reserveAttempt(update, [{ key: 'a', limit }], backoff);
  return { waitMs, release: undo };
}

test('counts nothing while one of several subjects has to wait', async () => {
  await fail(other);
  for (let n = 0; n < 5; n += 1) expect(await fail(subject, other)).toBe(1);
  await failTimes(3);
  now += 1;
  await fail(other);
  expect(await fail(subject, other)).toBe(2);
});

test('a release does not end the wait of a later failure', async () => {
  await failTimes(2);
  const slow = await attempt();
  now += 1;
  await failTimes(1);
  await slow.release();
  expect(await fail()).toBe(2);
});

test('a release after a reset changes nothing', async () => {
  const { release } = await attempt();
  await resetFailures(update, ['a']);
  now += 1;
  await failTimes(1);
  await release();
  await failTimes(2);
  expect(await fail()).toBe(1);
});

/** Implements the rules a second time, from the times of all failures, for comparison. */
function expectedWait(failures: number[], limit: number, at: number): number {
  const delay = (count: number) => (count < limit ? 0 : Math.min(2 ** (count - limit), 8));
  let run: number[] = [];
  const end = () => (run.length < limit ? run[0]! : run.at(-1)! + delay(run.length)) + 20;
  for (const time of failures) run = run.length > 0 && time < end() ? [...run, time] : [time];
  if (run.length === 0 || at >= end()) return 0;
  return Math.max(0, run.at(-1)! + delay(run.length) - at);
}

test('any sequence of failures, released attempts and pauses follows the rules', async () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.constant('wrong' as const) },
    { weight: 1, arbitrary: fc.constant('right' as const) },
    { weight: 3, arbitrary: fc.integer({ min: 1, max: 9 }) },
    { weight: 1, arbitrary: fc.integer({ min: 15, max: 30 }) },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 40 }),
      fc.integer({ min: 1, max: 4 }),
      async (steps, limit) => {
        update = createMemoryFailures(() => now);
        const failures: number[] = [];
        for (const step of steps) {
          if (typeof step === 'number') {
            now += step;
            continue;
          }
          const wait = expectedWait(failures, limit, now);
          const { waitMs, release } = await attempt(limit);
          expect(waitMs).toBe(wait);
          if (step === 'right') await release();
          else if (wait === 0) failures.push(now);
        }
      },
    ),
    { numRuns: 1_000 },
  );
});

test('the memory drops the least recently written of too many keys', async () => {
  await fail(...Array.from({ length: 50_000 }, (_, n) => ({ key: String(n), limit: n === 0 ? 2 : 1 })));
  for (const key of ['0', 'one more']) await fail({ key, limit: 1 });
  const waits = ['0', '2', '1'].map((key) => fail({ key, limit: 1 }));
  expect(await Promise.all(waits)).toEqual([2, 1, 0]);
});
