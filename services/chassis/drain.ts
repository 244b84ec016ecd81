import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * Ends a reply that has been written whole while the body of its request is still coming: what comes is read and thrown
 * away, for `drainMs` at most. A connection closed on a client that is still sending is reset, and the client would lose
 * the reply with it (RFC 9112 §9.6).
 */
export function endAfterBody(request: IncomingMessage, response: ServerResponse, drainMs: number): void {
  const end = () => response.end();
  const timer = setTimeout(end, drainMs);
  request.once('close', () => {
    clearTimeout(timer);
    end();
  });
  request.unpipe().resume();
}
