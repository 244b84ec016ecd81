import { expect, test } from '@jest/globals';
import { createLogger } from '../logger.ts';
import { createThrottledWarning } from './start.ts';

test('logs an unavailable collector once a minute', () => {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>);
  let ms = 0;
  const complain = createThrottledWarning(createLogger('test', 'info', { write }), () => ms);
  for (; ms < 150_000; ms += 100) complain(new Error('connect ECONNREFUSED'));
  expect(lines.map(({ batches }) => batches)).toEqual([1, 600, 600]);
});
