import { expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRefusals } from './refusals.ts';

/** Ms from the request to the answer, when the check itself took so long. */
async function refuse(beforeRefusal: (start: number) => Promise<void>, checkMs: number): Promise<number> {
  const start = performance.now() - checkMs;
  await beforeRefusal(start);
  return performance.now() - start;
}

test('no refusal is earlier than 400 ms', async () => {
  const beforeRefusal = createRefusals();
  const times = await Promise.all([0, 50, 399].map((ms) => refuse(beforeRefusal, ms)));
  for (const ms of times) expect(ms).toBeGreaterThanOrEqual(400);
});

test('after a slow one none is earlier than that, however fast its check was', async () => {
  const beforeRefusal = createRefusals();
  await refuse(beforeRefusal, 900);
  const times = await Promise.all([0, 50, 700].map((ms) => refuse(beforeRefusal, ms)));
  for (const ms of times) expect(ms).toBeGreaterThanOrEqual(900);
});

test('one that took very long does not hold the others back for as long', async () => {
  const beforeRefusal = createRefusals();
  await refuse(beforeRefusal, 3_600_000);
  const ms = await refuse(beforeRefusal, 0);
  expect(ms).toBeGreaterThanOrEqual(3_000);
  expect(ms).toBeLessThan(60_000);
});

test('what was slow is forgotten after a while', async () => {
  const beforeRefusal = createRefusals(50);
  await refuse(beforeRefusal, 3_000);
  await refuse(beforeRefusal, 3_000);
  await sleep(150);
  expect(await refuse(beforeRefusal, 0)).toBeLessThan(3_000);
});
