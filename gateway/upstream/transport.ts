import type { IncomingHttpHeaders } from 'node:http';
import type { Request } from 'express';
import type { GatewayResponse } from '../request-context.ts';
import type { Instance } from './instances.ts';

/** A request in the hands of a transport. */
export interface Transfer {
  /** Its connection has served a request before. */
  readonly isReused: boolean;
  /** Breaks the request off. */
  abort(): void;
}

/** The events of a transfer. The transport itself writes the reply's body to the client. */
export interface TransferEvents {
  /** The connection is open, and the request is being sent. */
  onSending(): void;
  /** The reply's head is here. Returns false if the reply cannot be passed on and is to be discarded. */
  onHeaders(status: number, headers: IncomingHttpHeaders): boolean;
  /** A chunk of the reply's body is here. */
  onData(): void;
  /** The whole reply is here. */
  onEnd(): void;
  /** The reply, or the rest of it, does not come. */
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
