import type { ServerOptions } from 'node:http';
import { type Endpoint, endpoints } from '@content-platform/contract';

/** How long the gateway waits, in ms. */
export interface Timeouts {
  /** For one attempt to connect to a service. */
  connect: number;
  /** For both attempts together: a service that is away is told within 3 s. */
  connectTotal: number;
  /** For the head of a reply, and then for each next piece of its body. */
  response: number;
  /** For what still comes of a request that is refused already. */
  drain: number;
  /** For a client that takes nothing of its reply. Longer than everything above, during which nothing is sent to it. */
  idle: number;
}

const response = 15_000;
const connectTotal = 2_800;
/** The slowest reply of the contract: an upload. */
const slowest = Math.max(
  response,
  ...endpoints.map(({ replyWithinSeconds = 0 }: Endpoint) => replyWithinSeconds * 1_000),
);

export const timeouts: Timeouts = {
  connect: 2_000,
  connectTotal,
  response,
  drain: 5_000,
  // A request may wait for a place at the service, then for its reply.
  idle: response + connectTotal + slowest + 5_000,
};

/** Of the connections with clients. The header block is limited to 16 KB by `run`, as everywhere. */
export const serverOptions = {
  headersTimeout: 15_000,
  // The whole request, its body included: 10 MB by a slow line.
  requestTimeout: 180_000,
  // How often the two above are looked at.
  connectionsCheckingInterval: 5_000,
  // Longer than the minute for which the usual load balancers keep an idle connection: they close it, not we.
  keepAliveTimeout: 65_000,
  // Ours has the envelope.
  requireHostHeader: false,
} satisfies ServerOptions;

/** What is under way has so long when the gateway is told to stop, in ms: as long as the slowest reply may take. */
export const finishMs = slowest;
