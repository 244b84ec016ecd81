import type { Server, ServerOptions } from 'node:http';
import type { Socket } from 'node:net';
import { type Endpoint, endpoints } from '@content-platform/contract';

const response = 15_000;
const connectTotal = 2_800;
/** The slowest reply of the contract: an upload. */
const slowest = Math.max(
  response,
  ...endpoints.map(({ replyWithinSeconds = 0 }: Endpoint) => replyWithinSeconds * 1_000),
);

/** Time limits of the gateway, in ms. */
export const timeouts = {
  /** One attempt to connect to a service. */
  connect: 2_000,
  /** Both attempts to connect to an instance: 503 follows within 3 s, or 6 s if the request moves to another one. */
  connectTotal,
  /** The wait for a slot; then the head of a reply, and each next chunk of its body. */
  response,
  /** An idle connection to a service: below 5 s, so that the gateway closes it before a Node server does. */
  keepAlive: 4_000,
  /** An idle connection of a proxy. Proxies should close it first: Google's load balancer does after 600 s. */
  proxyKeepAlive: 620_000,
  /** Pause between two resolutions of a service's name, and between two probes of an instance. */
  probeInterval: 1_000,
  /** Reading the rest of a refused request. */
  drain: 5_000,
  /** No bytes to or from a client. Longer than the waits for a slot, a connection and the slowest reply together. */
  idle: response + connectTotal + slowest + 5_000,
};
export type Timeouts = typeof timeouts;

export const serverOptions = {
  maxHeaderSize: 16_384,
  headersTimeout: 15_000,
  // The whole request with its body: 10 MB over a slow line.
  requestTimeout: 180_000,
  connectionsCheckingInterval: 5_000,
  // Of clients, and of proxies that are not in TRUSTED_PROXIES. Many proxies close an idle connection after a minute.
  keepAliveTimeout: 65_000,
  // A request without a body then emits no `end` or `close`, and its destroy() has no effect: use the response.
  // These events would be a tenth of the cost of a refusal.
  optimizeEmptyRequests: true,
  // The gateway checks this itself, to send the error envelope.
  requireHostHeader: false,
} satisfies ServerOptions;

/** Time for requests in progress when the gateway stops, in ms: as long as the slowest reply may take. */
export const gracePeriodMs = slowest;

/** Keeps idle connections of proxies for `ms`. Node has one limit for all connections of a server. */
export function keepProxyConnections(server: Server, isProxy: (socket: Socket) => boolean, ms: number): void {
  // The listener of node:http, which reads the limit from the server that it is called on.
  const serve = server.listeners('connection')[0] as (this: Server, socket: Socket) => void;
  const forProxies = Object.create(server, { keepAliveTimeout: { value: ms } }) as Server;
  server.removeListener('connection', serve);
  server.prependListener('connection', (socket) => serve.call(isProxy(socket) ? forProxies : server, socket));
}
