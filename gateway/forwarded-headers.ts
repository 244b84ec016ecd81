import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import type { Endpoint } from '@content-platform/contract';
import type { Exchange } from './exchange.ts';

/** They speak of one connection, not of the message (RFC 9110 §7.6.1). */
const hopByHop = new Set([
  'connection',
  'proxy-connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-authentication-info',
]);

/**
 * What a client may not tell a service: who it is, where it comes from, another method or target, a trace to join.
 * `expect` is answered here, and a forwarded one would keep http-proxy-middleware from telling us of the request.
 */
const notForClients =
  /^(?:x-user-.*|x-forwarded(?:-.*)?|x-real-ip|forwarded|(?:x-(?:cluster-)?|true-)client-ip|cf-connecting-ip|(?:x-)?remote-user|traceparent|tracestate|baggage|x-http-method(?:-override)?|x-method-override|x-original-.*|x-rewrite-url|expect)$/;

/** Those of `headers` that `isMeant` takes, without those of the connection, also without those that Connection names. */
function endToEnd(
  headers: IncomingHttpHeaders,
  isMeant: (name: string) => boolean = () => true,
): IncomingHttpHeaders {
  const named = new Set((headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()));
  const kept: IncomingHttpHeaders = {};
  // Each request comes by here twice: no lists of pairs.
  for (const name of Object.keys(headers)) {
    if (!hopByHop.has(name) && !named.has(name) && isMeant(name)) kept[name] = headers[name];
  }
  return kept;
}

/**
 * Makes the headers a service gets of the client's, and those of our trace; `host` is the service's, `publicUrl` where
 * clients reach us.
 */
export function createRequestHeaders(host: string, publicUrl: string) {
  const { protocol, host: publicHost } = new URL(publicUrl);
  return (
    headers: IncomingHttpHeaders,
    { address, requestId, body, endpoint }: Exchange,
    trace: Record<string, string> = {},
  ): IncomingHttpHeaders => {
    const isForServices = (name: string) =>
      // Some servers take _ for -: it would be a second Content-Length to them, or another header of this list.
      !name.includes('_') &&
      !notForClients.test(name) &&
      // What a browser sends along unasked is for those alone who gave it.
      (name !== 'cookie' || endpoint?.cookies === true);
    return {
      ...endToEnd(headers, isForServices),
      ...(body ? { 'content-length': String(body.length) } : {}),
      host,
      'x-forwarded-for': address,
      'x-forwarded-host': publicHost,
      'x-forwarded-proto': protocol.slice(0, -1),
      'x-request-id': requestId,
      ...trace,
    };
  };
}

/** Reports of a service to us, and what the gateway says itself. */
const notForReplies = ['server-timing', 'x-powered-by', 'x-request-id'];

/** The headers a client gets of a service's reply; cookies only where the `endpoint` has some. */
export function replyHeaders(headers: IncomingHttpHeaders, endpoint?: Endpoint): OutgoingHttpHeaders {
  const kept = endToEnd(headers);
  for (const name of notForReplies) delete kept[name];
  if (!endpoint?.cookies) delete kept['set-cookie'];
  // Ours is set already, and says Origin.
  return kept.vary ? { ...kept, vary: `Origin, ${kept.vary}` } : kept;
}
