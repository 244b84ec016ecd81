import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * Ends a reply that is written completely while its request's body still arrives: discards the body, for at most
 * `drainMs`. Closing the connection while the client sends would reset it, and the client would lose the reply (RFC 9112
 * §9.6).
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
