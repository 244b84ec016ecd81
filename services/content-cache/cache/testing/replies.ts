import { tracingChannel } from 'node:diagnostics_channel';

export type ReplyFigures = typeof noReplies;

export const noReplies = {
  /** replies to READ; one reply may serve several waiting readers */
  redisHits: 0,
  redisWaits: 0,
  leases: 0,
  /** stored and refused FILLs; most are refused because a clear deleted the lease */
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

/** Counts the scripts' replies to all clients of this thread from now on. */
export function countReplies(): ReplyFigures {
  const figures = { ...noReplies };
  tracingChannel('ioredis:command').asyncEnd.subscribe((message) => {
    const { result } = message as { result?: unknown };
    const name = NAMES[String(Array.isArray(result) ? result[0] : result)];
    if (name) figures[name] += 1;
  });
  return figures;
}
