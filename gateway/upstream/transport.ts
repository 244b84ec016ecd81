import type { Agent, IncomingHttpHeaders } from 'node:http';
import { HttpError, unavailable } from '@content-platform/chassis';
import type { GatewayRequest, GatewayResponse } from '../request-context.ts';
import type { UpstreamReason } from '../metrics.ts';
import { ConnectionFailed } from './connect.ts';
import type { ConnectionPool } from './forward-buffered.ts';

/** One process of a service. */
export interface Instance {
  readonly address: string;
  readonly pool: ConnectionPool;
  /** Opens connections for streamed uploads. */
  readonly agent: Agent;
  /** Keeps the connection of the probes. */
  readonly probeAgent: Agent;
  /** Requests of this gateway to the instance that are in progress. */
  inFlight: number;
  /** Readiness at the last probe; false from a failed connection attempt until the next probe. */
  isReady: boolean;
  missedProbes: number;
}

export interface Transfer {
  /** Whether its connection has served a request before: then the service may have closed the connection meanwhile. */
  isReused(): boolean;
  /** Ends the transfer early and closes its connection. */
  abort(): void;
}

/** The events of a transfer. The transport itself writes the reply's body to the client. */
export interface TransferEvents {
  /** The connection is open, and the request is being sent. */
  onSending(): void;
  /** The reply's head has arrived. Returns false if the reply cannot be forwarded: the transport discards it. */
  onHeaders(status: number, headers: IncomingHttpHeaders): boolean;
  onData(): void;
  onEnd(): void;
  /** The reply failed or is incomplete. */
  onError(error: unknown): void;
}

/** Sends a request, with these `headers` and the body in `response.locals`, to an instance of a service. */
export type Transport = (
  request: GatewayRequest,
  headers: IncomingHttpHeaders,
  response: GatewayResponse,
  instance: Instance,
  events: TransferEvents,
) => Transfer;

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

export function reasonOf(error: unknown): UpstreamReason {
  if (error instanceof TimedOut) return 'timeout';
  return error instanceof ConnectionFailed ? 'connect' : 'broken';
}

/** Returns whether the other side closed or reset the connection. */
export function isClosedByPeer(error: unknown): boolean {
  const { code = '' } = error as NodeJS.ErrnoException;
  return ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(code);
}
