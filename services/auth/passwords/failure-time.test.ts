import { expect, test } from '@jest/globals';
import { createEqualizeFailureTime, type EqualizeFailureTime } from './failure-time.ts';

let time = 0;
const clock = { now: () => time, sleep: async (ms: number) => void (time += ms) };

/** Returns the ms from the request to the reply if the check took `checkMs`. */
async function fail(equalize: EqualizeFailureTime, checkMs: number): Promise<number> {
  const start = time;
  time += checkMs;
  await equalize(start);
  return time - start;
}

const create = () => createEqualizeFailureTime(clock);

test('a failure takes 400 ms after a fast check', async () => {
  const equalize = create();
  for (const checkMs of [0, 50, 399]) expect(await fail(equalize, checkMs)).toBe(400);
});

test('after a slow failure the next ones take as long', async () => {
  const equalize = create();
  expect(await fail(equalize, 900)).toBe(900);
  for (const checkMs of [0, 50, 700]) expect(await fail(equalize, checkMs)).toBe(900);
});

test('a very slow failure delays the others by 3 s at most', async () => {
  const equalize = create();
  await fail(equalize, 3_600_000);
  expect(await fail(equalize, 0)).toBe(3_000);
});

test('a slow failure is forgotten after a while', async () => {
  const equalize = create();
  await fail(equalize, 3_000);
  time += 100_000;
  expect(await fail(equalize, 0)).toBe(3_000);
  time += 130_000;
  expect(await fail(equalize, 0)).toBe(400);
});
