import { expect, test } from '@jest/globals';
import { withTimeout } from './concurrency.ts';

test('resolves and rejects as the work does, and with the fallback when the work hangs', async () => {
  expect(await withTimeout(Promise.resolve(1), 60_000, null)).toBe(1);
  await expect(withTimeout(Promise.reject(new Error('failed')), 60_000)).rejects.toThrow('failed');
  expect(await withTimeout(new Promise(() => undefined), 1, 'fallback')).toBe('fallback');
});
