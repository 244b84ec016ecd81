import { randomUUID } from 'node:crypto';

const acceptable = /^[A-Za-z0-9._-]{1,128}$/;

/** Returns the client's X-Request-Id if it is 1 to 128 characters of [A-Za-z0-9._-], otherwise a new id. */
export function requestId(given: string | undefined): string {
  return given !== undefined && acceptable.test(given) ? given : randomUUID();
}
