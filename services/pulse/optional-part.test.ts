import { expect, test } from '@jest/globals';
import { until, within } from '../../test/support/wait.ts';
import { optionalPart } from './optional-part.ts';

test('what hangs is waited for once; then not, until it answers', async () => {
  let answer: () => Promise<number> = () => new Promise(() => undefined);
  const ask = optionalPart(() => answer());
  expect(await within('the first', ask())).toBeNull();
  const tick = Promise.withResolvers<string>();
  setImmediate(tick.resolve, 'a tick');
  expect(await Promise.race([ask(), tick.promise])).toBeNull();
  answer = () => Promise.resolve(7);
  await until('it is heard that it answers', async () => (await ask()) === 7, 20_000);
});

test('what fails is null, and what is asked for is told', async () => {
  const ask = optionalPart((n: number) => (n > 1 ? Promise.resolve(n) : Promise.reject(new Error('small'))));
  expect(await ask(2)).toBe(2);
  expect(await ask(1)).toBeNull();
});
