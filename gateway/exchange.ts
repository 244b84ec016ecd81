import type { Readable } from 'node:stream';
import type { NextFunction, Request, Response } from 'express';
import type { Endpoint } from '@content-platform/contract';
import type { Caller, Span } from '@content-platform/chassis';

/** What the gateway knows of one request. Each step reads what those before it found out. */
export interface Exchange {
  requestId: string;
  /** The request's part of a trace, where there are traces. */
  span: Span | undefined;
  /** performance.now() when the head was read. */
  startedAt: number;
  /** Client's address, canonical: no IPv4 in IPv6. */
  address: string;
  /** The path as it came, checked by `checkTarget`; without the query. */
  path: string;
  /** Undefined until the allowlist has found it. */
  endpoint?: Endpoint;
  /** Undefined for public endpoints. */
  caller?: Caller;
  /** The body, whole; undefined when there is none. */
  body?: Buffer;
  /** The body of an upload, on its way; destroyed with what is wrong with it. */
  bodyStream?: Readable;
  /** The service's Server-Timing. */
  serverTiming?: string;
  /** performance.now() when a reply was written whose request body is still being drained. */
  answeredAt?: number;
}

/** express hands the exchange on as response.locals. */
export type GatewayResponse = Response<unknown, Exchange>;

/** One step on a request's way. It throws HttpError, calls next, or answers. */
export type Step = (request: Request, response: GatewayResponse, next: NextFunction) => void | Promise<void>;
