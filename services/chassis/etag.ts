import { createHash } from 'node:crypto';

/**
 * A strong ETag: a hash of the reply. The version alone would not do: a record that was deleted and, a day later,
 * created again may have the same one.
 */
export function etagOf(payload: string | Buffer): string {
  return `"${createHash('sha256').update(payload).digest('base64url')}"`;
}

const etags = /(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g;

/** Whether If-None-Match names `etag` (RFC 9110 §13.1.2): a list or `*`, by weak comparison, so W/ does not count. */
export function isCurrent(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  const named: string[] = ifNoneMatch.match(etags) ?? [];
  return named.some((name) => name.replace('W/', '') === etag);
}

/**
 * Whether If-Match lets a change of what has this `etag` pass (RFC 9110 §13.1.1): a list or `*`, by strong comparison,
 * so that W/ never does. True when there is none.
 */
export function ifMatchHolds(ifMatch: string | undefined, etag: string): boolean {
  if (ifMatch === undefined || ifMatch.trim() === '*') return true;
  const named: string[] = ifMatch.match(etags) ?? [];
  return named.includes(etag);
}
