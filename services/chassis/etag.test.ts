import { expect, test } from '@jest/globals';
import { etagOf, matchesIfMatch, matchesIfNoneMatch } from './request-input.ts';

const etag = etagOf('{"a":1}');

test('an ETag is a quoted hash of the complete reply', () => {
  expect(etag).toMatch(/^"[\w-]{43}"$/);
  expect(etagOf('{"a":2}')).not.toBe(etag);
});

test.each([
  [undefined, false, true],
  ['', false, false],
  ['*', true, true],
  [' * ', true, true],
  [etag, true, true],
  // A CDN or a compressing proxy adds W/ to the ETag of a reply, and clients send it back.
  [`W/${etag}`, true, true],
  [`W/"other",W/${etag}`, true, true],
  [`W/"other",${etag}`, true, true],
  [`"other", W/"and, this", ${etag}`, true, true],
  ['W/"other"', false, false],
  ['"other"', false, false],
  [etag.slice(1, -1), false, false],
  [`"x${etag.slice(1)}`, false, false],
  [etag.toUpperCase(), false, false],
])('the header %s: If-None-Match matches %s, If-Match %s', (header, isCurrent, allows) => {
  expect(matchesIfNoneMatch(header, etag)).toBe(isCurrent);
  expect(matchesIfMatch(header, etag)).toBe(allows);
});
