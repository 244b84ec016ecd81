import { expect, test } from '@jest/globals';
import { etagOf, isCurrent } from './etag.ts';

const etag = etagOf('{"a":1}');

test('an ETag is a quoted hash of the whole reply', () => {
  expect(etag).toMatch(/^"[\w-]{43}"$/);
  expect(etagOf('{"a":2}')).not.toBe(etag);
});

test.each([
  [undefined, false],
  ['', false],
  ['*', true],
  [' * ', true],
  [etag, true],
  [`W/${etag}`, true],
  [`"other", W/"and, this", ${etag}`, true],
  ['"other"', false],
  [etag.slice(1, -1), false],
  [`"x${etag.slice(1)}`, false],
  [etag.toUpperCase(), false],
])('If-None-Match: %s', (header, current) => {
  expect(isCurrent(header, etag)).toBe(current);
});
