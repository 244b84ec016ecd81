import { describe, expect, test } from '@jest/globals';
import { readableLine } from './log-view.ts';

test('formats a JSON line as readable text', () => {
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

test('shows only the message of an error', () => {
  const error = { type: 'Error', message: 'no answer', stack: 'Error: no answer\n    at x' };
  const { text } = readableLine('auth', JSON.stringify({ level: 'error', message: 'It failed', error }));
  expect(text).toMatch(/It failed error=no answer$/);
});

test.each(['not JSON', '"text"', '{"half": ', '12'])('shows other output unchanged: %s', (line) => {
  const { level, text } = readableLine('auth', line);
  expect(level).toBe('error');
  expect(text.endsWith(line)).toBe(true);
});

describe('escapes terminal control characters', () => {
  const bad = '\x1b]0;owned\x07 \x1b[2J \x9b31m \x7f \r\n \u202e \u2066 \u2028 \u061c \0';
  const shown = String.raw`\u001b]0;owned\u0007 \u001b[2J \u009b31m \u007f \u000d\n \u202e \u2066 \u2028 \u061c \u0000`;

  test.each([
    ['a message', { message: bad }, shown],
    ['a field', { message: 'x', key: bad }, `x key=${shown}`],
    ["a field's name", { message: 'x', [bad]: 1 }, `x ${shown}=1`],
    ['an error', { message: 'x', error: { message: bad, stack: '' } }, `x error=${shown}`],
    ['a level', { level: bad, message: 'x' }, `${shown} x`],
  ])('%s', (_, entry, end) => {
    const { text } = readableLine('cache', JSON.stringify({ level: 'info', ...entry }));
    expect(text.endsWith(` ${end}`)).toBe(true);
  });

  test('in a nested object', () => {
    const { text } = readableLine('cache', JSON.stringify({ message: 'x', event: { id: '\x1b \x9b' } }));
    expect(text.endsWith(String.raw`x event={"id":"\u001b \u009b"}`)).toBe(true);
  });

  test('in a line that is not JSON, except tabs', () => {
    const { text } = readableLine('cache', `${bad}\tüñ漢😀`);
    expect(text.endsWith(`${shown}\tüñ漢😀`)).toBe(true);
  });
});
