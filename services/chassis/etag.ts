import { createHash } from 'node:crypto';

/** Returns a strong ETag, the hash of the reply. A record's version alone is reused after it was deleted and re-created. */
export function etagOf(payload: string | Buffer): string {
  return `"${createHash('sha256').update(payload).digest('base64url')}"`;
}

const etagPattern = /(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g;
const etagsIn = (header: string): string[] => header.match(etagPattern) ?? [];

/** Returns whether If-None-Match, a list or `*`, contains `etag` (RFC 9110 §13.1.2: weak comparison, ignores W/). */
export function matchesIfNoneMatch(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  return etagsIn(ifNoneMatch).some((name) => name.replace('W/', '') === etag);
}

/** Whether If-Match, a list or `*`, allows a change (RFC 9110 §13.1.1: W/ never matches). True without the header. */
export function matchesIfMatch(ifMatch: string | undefined, etag: string): boolean {
  if (ifMatch === undefined || ifMatch.trim() === '*') return true;
  return etagsIn(ifMatch).includes(etag);
}
