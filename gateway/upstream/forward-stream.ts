import type { ClientRequest, IncomingMessage } from 'node:http';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { endAfterBody } from '@content-platform/chassis';
import type { GatewayRequest, GatewayResponse } from '../request-context.ts';
import type { Instance, Transfer, TransferEvents, Transport } from './transport.ts';

interface ProxiedTransfer extends Transfer {
  instance: Instance;
  events: TransferEvents;
  request?: ClientRequest;
  isAborted?: true;
}

/**
 * Creates the transport for streamed bodies, over http-proxy-middleware. After the reply, the rest of the body is
 * discarded for `drainMs` at most.
 */
export function createForwardStream(url: URL, drainMs: number): Transport {
  const transfers = new WeakMap<GatewayResponse, ProxiedTransfer>();

  const proxy = createProxyMiddleware<GatewayRequest, GatewayResponse>({
    // The only hook that sees the options of a single request.
    router(_request, response, options) {
      const { address, agent } = transfers.get(response!)!.instance;
      options.buffer = response!.locals.bodyStream!;
      options.agent = agent;
      // Without path and query: the target is sent exactly as it was checked.
      return { protocol: url.protocol, hostname: address, port: url.port };
    },
    pathFilter: () => true,
    selfHandleResponse: true,
    // The default plugins parse URLs again for every log line and answer errors in their own form.
    ejectPlugins: true,
    plugins: [
      (server) => {
        server.on('proxyReq', (sent, _request, response) => watch(sent, response));
        server.on('proxyRes', (reply, request, response) => pass(reply, request, response));
        server.on('error', (error, _request, response) => {
          if (response) transfers.get(response as GatewayResponse)!.events.onError(error);
        });
      },
    ],
  });

  function watch(sent: ClientRequest, response: GatewayResponse): void {
    const transfer = transfers.get(response)!;
    // Aborted while the connection was being opened.
    if (transfer.isAborted) return void sent.destroy();
    transfer.request = sent;
    transfer.events.onSending();
    // Node does not report every end of a request as an error: after an unexpected 101 it emits only 'close'.
    sent.once('close', () => {
      if (!response.headersSent)
        transfer.events.onError(new Error('the connection was closed without a reply'));
    });
  }

  function pass(reply: IncomingMessage, request: GatewayRequest, response: GatewayResponse): void {
    const { events, abort } = transfers.get(response)!;
    reply.once('error', (error) => events.onError(error));
    // httpxy would close the client's connection after an incomplete reply, and the client could lose the error.
    if (!events.onHeaders(reply.statusCode!, reply.headers))
      return void Object.assign(reply, { complete: true }).destroy();
    reply.on('data', () => events.onData());
    reply.pipe(response, { end: false });
    reply.once('end', () => {
      events.onEnd();
      if (request.complete) return void response.end();
      response.locals.answeredAt = performance.now();
      endAfterBody(request, response, drainMs);
      // The service has replied, so the rest of the body is not sent to it.
      abort();
    });
  }

  return (request, headers, response, instance, events) => {
    const transfer: ProxiedTransfer = {
      instance,
      events,
      isReused: () => false,
      abort() {
        transfer.isAborted = true;
        transfer.request?.destroy();
      },
    };
    transfers.set(response, transfer);
    request.headers = headers;
    void proxy(request, response, (error) => error && events.onError(error));
    return transfer;
  };
}
