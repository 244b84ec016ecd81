import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Endpoint } from '@content-platform/contract';
import type { Caller, Span } from '@content-platform/chassis';

/** The gateway's data about one request. Each step reads the fields that earlier steps have set. */
export interface RequestContext {
  requestId: string;
  /** The request's span; undefined where the process is not traced. */
  span: Span | undefined;
  /** performance.now() when the head was read. */
  startedAt: number;
  /** Headers of every reply, also of an error. Names that services also send are in lower case: theirs replace these. */
  replyHeaders: OutgoingHttpHeaders;
  /** The client's IP address in canonical form; IPv4 addresses are not written as IPv6. */
  address: string;
  /** The path as the client sent it, checked by `checkTarget`; without the query. */
  path: string;
  /** Undefined until the allowlist has found the endpoint. */
  endpoint?: Endpoint;
  /** Undefined for public endpoints. */
  caller?: Caller;
  /** The whole body; undefined if there is none or it is streamed. */
  body?: Buffer;
  /** The body of an upload while it arrives. It is destroyed with the error if the upload is refused. */
  bodyStream?: Duplex;
  /** performance.now() when the last byte of an upload was read. */
  bodyEndedAt?: number;
  serverTiming?: string;
  /** performance.now() when the measured time ended. Set if the reply goes on: a file, a stream, or a body to drain. */
  answeredAt?: number;
  /** The callbacks of onFinished(). */
  callbacks?: Set<() => void>;
}

/** A request whose head was read. */
export type GatewayRequest = IncomingMessage & { method: string; url: string };
export type GatewayResponse = ServerResponse<GatewayRequest> & { locals: RequestContext };

/** A step of a request: throws HttpError, or returns false if it has answered or the request must not continue. */
export type Step = (
  request: GatewayRequest,
  response: GatewayResponse,
) => boolean | void | Promise<boolean | void>;

/**
 * Calls `done` when the reply was sent or its connection has closed; never if `response.destroyed` is true already. All
 * callbacks of a response share one listener. Returns a function that cancels the call.
 */
export function onFinished(response: GatewayResponse, done: () => void): () => void {
  const { locals: context } = response;
  // Not a WeakMap of sets: V8 treats its values as reachable until a full collection, and they refer to the response.
  if (!context.callbacks) {
    const all = (context.callbacks = new Set());
    response.once('close', () => {
      for (const each of all) each();
    });
  }
  const { callbacks } = context;
  callbacks.add(done);
  return () => void callbacks.delete(done);
}
