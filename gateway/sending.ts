import type { IncomingHttpHeaders } from 'node:http';
import type { Request } from 'express';
import type { GatewayResponse } from './exchange.ts';
import type { Instance } from './instances.ts';

/** A request that was given to a process of a service. */
export interface Sending {
  /** Its connection has served a request before. */
  readonly isReused: boolean;
  /** Breaks it off. */
  abort(): void;
}

/** What is told of a request that was sent; whoever sends it writes the reply's body to the client. */
export interface ReplyEvents {
  /** The reply's head is here. False: it cannot be passed on, and nothing of the reply is wanted. */
  head(status: number, headers: IncomingHttpHeaders): boolean;
  /** A piece of the reply's body is here. */
  piece(): void;
  /** The reply is here, whole. */
  end(): void;
  /** The reply does not come, or not all of it. */
  fail(error: unknown): void;
}

/** A way to a process of a service: sends the request with these `headers`, as `response.locals` has its body. */
export type Send = (
  request: Request,
  headers: IncomingHttpHeaders,
  response: GatewayResponse,
  instance: Instance,
  events: ReplyEvents,
) => Sending;
