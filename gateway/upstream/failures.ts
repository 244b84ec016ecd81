import type { IncomingHttpHeaders } from 'node:http';
import { HttpError, unavailable } from '@content-platform/chassis';
import type { UpstreamReason } from '../metrics.ts';
import { NotConnected } from './connect.ts';

/** The service sent nothing, or read nothing of an upload, within its time limit. */
export class TimedOut extends Error {}

/** Builds the client's error for each failure of a service; `cause` is for the log. */
export const upstreamErrors: Record<UpstreamReason, (cause: unknown) => HttpError> = {
  connect: (cause) => unavailable('The service cannot be reached at the moment.', cause),
  busy: (cause) => unavailable('The service is overloaded. Retry later.', cause),
  timeout: (cause) => new HttpError('gateway_timeout', 'The service did not answer in time.', { cause }),
  broken: (cause) => new HttpError('bad_gateway', 'The service broke off.', { cause }),
};

/** Classifies the error of an attempt. */
export function reasonOf(error: unknown): UpstreamReason {
  if (error instanceof TimedOut) return 'timeout';
  return error instanceof NotConnected ? 'connect' : 'broken';
}

/** Tells whether the other side closed or reset the connection. */
export function isBroken(error: unknown): boolean {
  const { code = '' } = error as NodeJS.ErrnoException;
  return ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(code);
}

/**
 * Tells whether a reply comes from something else at the service's address: our services send X-Request-Id with every
 * reply, so a 5xx without it is not in our form.
 */
export const isForeign = (status: number, headers: IncomingHttpHeaders): boolean =>
  status >= 500 && headers['x-request-id'] === undefined;
