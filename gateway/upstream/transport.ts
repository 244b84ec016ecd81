import type { IncomingHttpHeaders } from 'node:http';
import type { Request } from 'express';
import type { GatewayResponse } from '../request-context.ts';
import type { Instance } from './instances.ts';

/** A request that a transport is sending. */
export interface Transfer {
  /** Whether its connection has served a request before. */
  readonly isReused: boolean;
  /** Aborts the request. */
  abort(): void;
}

/** The events of a transfer. The transport itself writes the reply's body to the client. */
export interface TransferEvents {
  /** The connection is open, and the request is being sent. */
  onSending(): void;
  /** The reply's head has arrived. Returns false if the reply cannot be forwarded: the transport discards it. */
  onHeaders(status: number, headers: IncomingHttpHeaders): boolean;
  /** A chunk of the reply's body has arrived. */
  onData(): void;
  /** The whole reply has arrived. */
  onEnd(): void;
  /** The reply failed or is incomplete. */
  onError(error: unknown): void;
}

/** Sends a request, with these `headers` and the body in `response.locals`, to an instance of a service. */
export type Transport = (
  request: Request,
  headers: IncomingHttpHeaders,
  response: GatewayResponse,
  instance: Instance,
  events: TransferEvents,
) => Transfer;
