import { expect, test } from '@jest/globals';
import { readableLine } from './log-view.ts';

test('a JSON line becomes one that a person reads', () => {
  const time = new Date(2025, 0, 2, 12, 0, 1).toISOString();
  const line = {
    time,
    level: 'warn',
    service: 'auth',
    request_id: 'r1',
    trace_id: 't',
    message: 'It is slow',
    ms: 700,
  };
  expect(readableLine('auth', JSON.stringify(line))).toEqual({
    level: 'warn',
    text: '12:00:01 auth          warn  It is slow request_id=r1 ms=700',
  });
});

test('of an error the message is shown; its stack is for the log file', () => {
  const error = { type: 'Error', message: 'no answer', stack: 'Error: no answer\n    at x' };
  const { text } = readableLine('auth', JSON.stringify({ level: 'error', message: 'It failed', error }));
  expect(text).toMatch(/It failed error=no answer$/);
});

test.each(['not JSON', '"text"', '{"half": ', '12'])('anything else is shown as it is: %s', (line) => {
  const { level, text } = readableLine('auth', line);
  expect(level).toBe('error');
  expect(text.endsWith(line)).toBe(true);
});
