import type { ServerResponse } from 'node:http';

/** A fifth of what may be at one service at once (upstream.ts): no single caller fills the queue that all share. */
export const maxInFlight = 100;

/** Counts `response` until it is closed; false, and nothing counted, when its caller has too many under way already. */
export type InFlight = (caller: string, response: ServerResponse) => boolean;

/** At most `max` requests of each caller under way at once, in this process. */
export function createInFlight(max = maxInFlight): InFlight {
  const counts = new Map<string, number>();

  function leave(caller: string): void {
    const left = counts.get(caller)! - 1;
    if (left > 0) counts.set(caller, left);
    else counts.delete(caller);
  }

  return (caller, response) => {
    // The client went away: nothing would tell us of its end any more.
    if (response.destroyed) return true;
    const count = counts.get(caller) ?? 0;
    if (count >= max) return false;
    counts.set(caller, count + 1);
    response.once('close', () => leave(caller));
    return true;
  };
}
