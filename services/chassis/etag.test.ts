import { expect, test } from '@jest/globals';
import { etagOf, matchesIfMatch, matchesIfNoneMatch } from './etag.ts';

const etag = etagOf('{"a":1}');

test('an ETag is a quoted hash of the complete reply', () => {
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
  [`W/"other",W/${etag}`, true],
  ['W/"other"', false],
  [`"other", W/"and, this", ${etag}`, true],
  ['"other"', false],
  [etag.slice(1, -1), false],
  [`"x${etag.slice(1)}`, false],
  [etag.toUpperCase(), false],
])('If-None-Match: %s', (header, current) => {
  expect(matchesIfNoneMatch(header, etag)).toBe(current);
});

test.each([
  [undefined, true],
  ['*', true],
  [' * ', true],
  [etag, true],
  [`"other", ${etag}`, true],
  [`W/"other",${etag}`, true],
  ['', false],
  ['"other"', false],
  // A weak ETag may cover different content, so it never matches (RFC 9110 §8.8.3.2).
  [`W/${etag}`, false],
  [`W/"other", W/${etag}`, false],
  [etag.slice(1, -1), false],
  [`"x${etag.slice(1)}`, false],
  [etag.toUpperCase(), false],
])('If-Match: %s', (header, holds) => {
  expect(matchesIfMatch(header, etag)).toBe(holds);
});
