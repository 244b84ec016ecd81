export interface Job {
  origin: string;
  /** Requested alternately. */
  paths: readonly string[];
  headers: Record<string, string>;
  requests: number;
}

/** The results of a job; times in ms. */
export interface Seen {
  perSecond: number;
  p50: number;
  p99: number;
}

export const connections = 64;
