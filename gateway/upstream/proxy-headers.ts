import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import type { Endpoint } from '@content-platform/contract';
import type { RequestContext } from '../request-context.ts';

/** Headers of one connection, not of the message (RFC 9110 §7.6.1). */
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
 * Headers by which a client could forge its identity, address, method or target, or join a trace; and `expect`, which
 * would keep http-proxy-middleware from emitting proxyReq.
 */
const notFromClients =
  /^(?:x-user-.*|x-forwarded(?:-.*)?|x-real-ip|forwarded|(?:x-(?:cluster-)?|true-)client-ip|cf-connecting-ip|(?:x-)?remote-user|traceparent|tracestate|baggage|x-http-method(?:-override)?|x-method-override|x-original-.*|x-rewrite-url|expect)$/;

/** Returns the headers that `isAllowed` accepts, without headers of the connection and those that Connection names. */
function endToEnd(headers: IncomingHttpHeaders, isAllowed: (name: string) => boolean): IncomingHttpHeaders {
  const named = new Set((headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()));
  const kept: IncomingHttpHeaders = {};
  // Written without lists of pairs, because it runs twice for each request.
  for (const name of Object.keys(headers)) {
    if (!hopByHop.has(name) && !named.has(name) && isAllowed(name)) kept[name] = headers[name];
  }
  return kept;
}

/** Builds the headers for a service from the client's headers and the headers of the gateway's trace. */
export type RequestHeaders = (
  headers: IncomingHttpHeaders,
  context: RequestContext,
  trace?: Record<string, string>,
) => IncomingHttpHeaders;

/** Creates the function for the service at `host`. `publicUrl`: the URL at which clients reach the gateway. */
export function createRequestHeaders(host: string, publicUrl: string): RequestHeaders {
  const { protocol, host: publicHost } = new URL(publicUrl);
  return (headers, { address, requestId, body, endpoint }, trace = {}) => {
    const isForServices = (name: string) =>
      // Some servers read _ as -, for example content_length as a second Content-Length.
      !name.includes('_') &&
      !notFromClients.test(name) &&
      // Browsers add cookies to every request, but only endpoints that set cookies need them.
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

/** Whether another program at the service's address replied: every reply of a service has X-Request-Id. */
export const isForeignReply = (status: number, headers: IncomingHttpHeaders): boolean =>
  status >= 500 && headers['x-request-id'] === undefined;

/** Headers for the gateway, and headers that the gateway sets itself. */
const notForClients = new Set(['server-timing', 'x-powered-by', 'x-request-id']);

/** Returns the headers of a service's reply for the client; cookies only if the `endpoint` has cookies. */
export function headersForClient(headers: IncomingHttpHeaders, endpoint?: Endpoint): OutgoingHttpHeaders {
  const isForClients = (name: string) =>
    !notForClients.has(name) && (name !== 'set-cookie' || endpoint?.cookies === true);
  // Not by `delete`: V8 would turn the object into a dictionary, which is slow to copy.
  const kept = endToEnd(headers, isForClients);
  // Otherwise the service's Vary would replace the gateway's own Vary: Origin.
  return kept.vary ? { ...kept, vary: `Origin, ${kept.vary}` } : kept;
}
