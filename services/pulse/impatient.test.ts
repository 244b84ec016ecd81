import { expect, test } from '@jest/globals';
import { until } from '../../test/support/wait.ts';
import { impatient } from './impatient.ts';

test('what hangs is waited for once; then not, until it answers', async () => {
  let answer: () => Promise<number> = () => new Promise(() => undefined);
  const ask = impatient(() => answer());
  const start = performance.now();
  expect(await ask()).toBeNull();
  const first = performance.now() - start;
  expect(first).toBeLessThan(10_000);
  // If they waited they would take five times as long as the first.
  for (let n = 0; n < 5; n += 1) expect(await ask()).toBeNull();
  expect(performance.now() - start - first).toBeLessThan(first);
  answer = () => Promise.resolve(7);
  await until('it is heard that it answers', async () => (await ask()) === 7, 20_000);
});

test('what fails is null, and what is asked for is told', async () => {
  const ask = impatient((n: number) => (n > 1 ? Promise.resolve(n) : Promise.reject(new Error('small'))));
  expect(await ask(2)).toBe(2);
  expect(await ask(1)).toBeNull();
});
