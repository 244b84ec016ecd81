/** What the load is told to do. */
export interface Job {
  origin: string;
  path: string;
  seconds: number;
  /** Requests that are due each second, whatever becomes of those before; 0: each as soon as the one before is answered. */
  perSecond: number;
  /** Connections that people have before it begins. */
  kept: number;
  /** Connections that are open at most: who finds none free opens one. */
  connections: number;
}

/** Times in ms from the moment at which a request was due to the end of its reply. */
export interface Quantiles {
  p50: number;
  p99: number;
}

/** What it saw. */
export interface Seen {
  /** Requests that were due. */
  due: number;
  /** Replies by their status. */
  statuses: Record<string, number>;
  /** Replies with 200 a second, between the first moment and the last. */
  goodput: number;
  /** The same within the platform's target of 500 ms. */
  goodputInTime: number;
  good: Quantiles | undefined;
  refused: Quantiles | undefined;
  /** Refusals without Retry-After. */
  withoutRetryAfter: number;
  /** Requests whose client went away after `patienceMs`. */
  gaveUp: number;
  /** Requests that were due while all connections were taken. */
  unsent: number;
  /** Connections that were closed under a request. */
  broken: number;
  /** When the last request was due, in ms since 1970. */
  endedAt: number;
}

/** A client waits so long. */
export const patienceMs = 5_000;
/** The platform's target for a reply. */
export const targetMs = 500;
