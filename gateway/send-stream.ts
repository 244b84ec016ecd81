import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Request } from 'express';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { endAfterBody } from '@content-platform/chassis';
import type { GatewayResponse } from './exchange.ts';
import type { Instance } from './instances.ts';
import type { ReplyEvents, Send, Sending } from './sending.ts';

/** A request that the proxy has. */
interface Sent extends Sending {
  instance: Instance;
  events: ReplyEvents;
  request?: ClientRequest;
}

/**
 * Sends what goes on as it comes to the service at `url`, over http-proxy-middleware. What still comes when the service
 * has replied is listened to for `drainMs` at most.
 */
export function createSendStream(url: URL, drainMs: number): Send {
  const sendings = new WeakMap<GatewayResponse, Sent>();

  const proxy = createProxyMiddleware<Request, GatewayResponse>({
    // The one hook that sees the options of a single request: the body that is counted takes its place.
    router(_request, response, own) {
      own.buffer = response!.locals.bodyStream!;
      const { address, agent } = sendings.get(response!)!.instance;
      own.agent = agent;
      // Neither path nor query: the target goes on exactly as it was checked.
      return { protocol: url.protocol, hostname: address, port: url.port };
    },
    pathFilter: () => true,
    selfHandleResponse: true,
    // The usual ones parse addresses again for every log line, and answer errors in their own way.
    ejectPlugins: true,
    plugins: [
      (server) => {
        server.on('proxyReq', (sent, _request, response) => watch(sent, response));
        server.on('proxyRes', (answer, request, response) => pass(answer, request, response));
        server.on('error', (error, _request, response) => {
          if (response) sendings.get(response as GatewayResponse)!.events.fail(error);
        });
      },
    ],
  });

  /** Not every end of a request is an error to Node: after a 101 that nobody asked for there is just a close. */
  function watch(sent: ClientRequest, response: GatewayResponse): void {
    const sending = sendings.get(response)!;
    sending.request = sent;
    sent.once('close', () => {
      // The reply is here, whole; how long the client takes for it concerns the service no more.
      if (response.headersSent) sending.events.end();
      else sending.events.fail(new Error('the connection was closed without a reply'));
    });
  }

  /** The reply as it comes. */
  function pass(answer: IncomingMessage, request: Request, response: GatewayResponse): void {
    const { events, abort } = sendings.get(response)!;
    answer.once('error', (error) => events.fail(error));
    if (!events.head(answer.statusCode!, answer.headers)) return void answer.destroy();
    answer.on('data', () => events.piece());
    answer.pipe(response, { end: false });
    answer.once('end', () => {
      if (request.complete) return void response.end();
      response.locals.answeredAt = performance.now();
      endAfterBody(request, response, drainMs);
      // It has said all it has to say of a body that nobody gives it any more.
      abort();
    });
  }

  return (request, headers, response, instance, events) => {
    const sending: Sent = {
      instance,
      events,
      isReused: false,
      abort: () => sending.request?.destroy(),
    };
    sendings.set(response, sending);
    request.headers = headers;
    void proxy(request, response, (error) => error && events.fail(error));
    return sending;
  };
}
