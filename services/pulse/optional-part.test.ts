import { expect, test } from '@jest/globals';
import { createBreaker, createLogger } from '@content-platform/chassis';
import { until, within } from '../../test/support/wait.ts';
import { optionalPart } from './optional-part.ts';

test('waits once for a request that hangs, then returns null at once until a request succeeds', async () => {
  let answer: () => Promise<number> = () => new Promise(() => undefined);
  const ask = optionalPart(createBreaker(createLogger('pulse', 'silent'), ''), () => answer());
  expect(await within('the first', ask(), 10_000)).toBeNull();
  const tick = Promise.withResolvers<string>();
  setImmediate(tick.resolve, 'a tick');
  expect(await Promise.race([ask(), tick.promise])).toBeNull();
  answer = () => Promise.resolve(7);
  await until('the request succeeds again', async () => (await ask()) === 7, 20_000);
});
