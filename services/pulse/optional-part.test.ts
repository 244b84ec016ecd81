import { expect, jest, test } from '@jest/globals';
import { until, within } from '../../test/support/wait.ts';
import { optionalPart } from './optional-part.ts';

test('waits once for a request that hangs, then returns null at once until a request succeeds', async () => {
  let answer: () => Promise<number> = () => new Promise(() => undefined);
  const report = jest.fn();
  const ask = optionalPart({ allows: () => true, report }, () => answer());
  expect([await within('the first', ask(), 10_000), report.mock.calls.length]).toEqual([null, 1]);
  const tick = Promise.withResolvers<string>();
  setImmediate(tick.resolve, 'a tick');
  expect(await Promise.race([ask(), tick.promise])).toBeNull();
  answer = () => Promise.resolve(7);
  await until('the request succeeds again', async () => (await ask()) === 7, 20_000);
});
