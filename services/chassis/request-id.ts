import { randomUUID } from 'node:crypto';

const acceptable = /^[A-Za-z0-9._-]{1,128}$/;

/** The client's X-Request-Id when it is 1 to 128 of [A-Za-z0-9._-], else a new one. */
export function requestId(given: string | undefined): string {
  return given !== undefined && acceptable.test(given) ? given : randomUUID();
}
