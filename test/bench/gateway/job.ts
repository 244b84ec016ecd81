/** What the load is told to do. */
export interface Job {
  origin: string;
  /** They are asked for in turns. */
  paths: readonly string[];
  headers: Record<string, string>;
  requests: number;
}

/** What it saw; times in ms. */
export interface Seen {
  perSecond: number;
  p50: number;
  p99: number;
}

export const connections = 64;
