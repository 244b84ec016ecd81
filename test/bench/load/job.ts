export interface Job {
  /** Gateways; the connections are spread over them in turn. */
  origins: readonly string[];
  /** Requested in turn. */
  paths: readonly string[];
  seconds: number;
  /** Requests due per second, regardless of earlier ones; 0: each after the previous reply. */
  perSecond: number;
  /** Number of connections opened in advance. */
  preopened: number;
  /** Maximum number of connections; opened when no other is free. */
  connections: number;
}

/** Times in ms from the moment at which a request was due to the end of its reply. */
export interface Quantiles {
  p50: number;
  p95: number;
  p99: number;
}

export interface Seen {
  due: number;
  statuses: Record<string, number>;
  /** Replies with 200 per second. */
  goodput: number;
  /** Replies with 200 per second within the platform's target of 500 ms. */
  goodputInTime: number;
  good: Quantiles | undefined;
  /** The refusals of connections that had none before: the gateway reads later requests of a refused connection later. */
  firstRefused: Quantiles | undefined;
  /** Number of refusals without Retry-After. */
  withoutRetryAfter: number;
  /** Requests whose client disconnected after `patienceMs`. */
  gaveUp: number;
  /** Requests that were due while all connections were busy. */
  unsent: number;
  /** Connections that were closed during a request. */
  broken: number;
  /** When the last request was due, in ms since 1970. */
  endedAt: number;
}

/** Time after which a client disconnects, in ms. */
export const patienceMs = 5_000;
/** The platform's target for a reply, in ms. */
export const targetMs = 500;
