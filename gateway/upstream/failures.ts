import type { IncomingHttpHeaders } from 'node:http';
import { HttpError, unavailable } from '@content-platform/chassis';
import type { UpstreamReason } from '../metrics.ts';
import { NotConnected } from './connect.ts';

/** The service sent nothing, or read nothing of an upload, within its time limit. */
export class TimedOut extends Error {}

/** Builds the client's error for each failure of a service; `cause` is for the log. */
export const upstreamErrors: Record<UpstreamReason, (cause: unknown) => HttpError> = {
  connect: (cause) => unavailable('The service is unreachable. Retry later.', cause),
  busy: (cause) => unavailable('The service is overloaded. Retry later.', cause),
  timeout: (cause) => new HttpError('gateway_timeout', 'Timed out waiting for the service.', { cause }),
  broken: (cause) =>
    new HttpError('bad_gateway', 'The service closed the connection before the reply was complete.', {
      cause,
    }),
};

/** Classifies the error of an attempt. */
export function reasonOf(error: unknown): UpstreamReason {
  if (error instanceof TimedOut) return 'timeout';
  return error instanceof NotConnected ? 'connect' : 'broken';
}

/** Returns whether the other side closed or reset the connection. */
export function isBroken(error: unknown): boolean {
  const { code = '' } = error as NodeJS.ErrnoException;
  return ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(code);
}

/**
 * Returns whether a reply comes from another program at the service's address: services send X-Request-Id with every
 * reply, so a 5xx without this header is not theirs.
 */
export const isForeign = (status: number, headers: IncomingHttpHeaders): boolean =>
  status >= 500 && headers['x-request-id'] === undefined;
