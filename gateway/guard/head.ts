import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { HttpError } from '@content-platform/chassis';
import type { EarlyStep } from '../request-context.ts';

function malformed(message: string): HttpError {
  return new HttpError('malformed_request', message, { headers: { Connection: 'close' } });
}

/**
 * Finds heads that another parser may read differently (request smuggling). RFC 9112 §3.2 requires exactly one Host: a
 * proxy in front may route by another Host. Node's parser also accepts versions 0.9 and 2.0, and transfer codings before
 * `chunked`, which would hide the body; HTTP/1.0 has no transfer codings (§6.1).
 */
function problemOf({ httpVersion, headers, rawHeaders }: IncomingMessage): string | undefined {
  const isOld = httpVersion === '1.0';
  if (httpVersion !== '1.1' && !isOld) return 'The version must be HTTP/1.1 or HTTP/1.0.';
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || isOld))
    return 'The body must be sent plainly or chunked.';
  const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host').length;
  return hosts === 1 || (hosts === 0 && isOld) ? undefined : 'The request must have one Host header.';
}

/** The check of request heads: `inspect` finds malformed heads, and `refuse` answers them once a context exists. */
export function createHeadCheck() {
  /** Returns the error of a malformed head. It is the last head of its connection, although Node's parser continues. */
  const problems = new WeakMap<Socket, string>();
  const isMalformed = ({ socket }: IncomingMessage): boolean => problems.has(socket);

  /** Ignores requests after a malformed head: they may be part of its body. */
  const inspect: EarlyStep = (request, response) => {
    if (isMalformed(request)) return false;
    const problem = problemOf(request);
    if (problem !== undefined) problems.set(request.socket, problem);
    // The gateway does not upgrade. Node's parser discards the bytes after the request, so the connection must end.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false;
  };

  const refuse: EarlyStep = ({ socket }) => {
    const problem = problems.get(socket);
    if (problem !== undefined) throw malformed(problem);
  };

  return { inspect, isMalformed, refuse };
}
