import { tracingChannel } from 'node:diagnostics_channel';

export type ReplyFigures = typeof noReplies;

export const noReplies = {
  /** READs that Redis answered, by their answer: one may serve several readers who wait for the same fill */
  redisHits: 0,
  redisWaits: 0,
  leases: 0,
  /** FILLs that were stored, and those that were refused, mostly since a clear had taken the lease */
  fills: 0,
  refusedFills: 0,
};

const NAMES: Record<string, keyof ReplyFigures> = {
  HIT: 'redisHits',
  WAIT: 'redisWaits',
  FILL: 'leases',
  STORED: 'fills',
  REFUSED: 'refusedFills',
};

/** Counts from now on what the scripts answer to this thread, whichever client asked. */
export function countReplies(): ReplyFigures {
  const figures = { ...noReplies };
  tracingChannel('ioredis:command').asyncEnd.subscribe((message) => {
    const { result } = message as { result?: unknown };
    const name = NAMES[String(Array.isArray(result) ? result[0] : result)];
    if (name) figures[name] += 1;
  });
  return figures;
}
