import type { Verdict } from '../../results/section.ts';
import type { Held } from '../../support/heap.ts';

/**
 * Maximum growth from the end of the warm-up to the end of the run: memory as a share, sockets and handles as a number. rss
 * includes memory that Node does not account for, and pages that are free again. failed: maximum share of failed requests.
 */
export const goals = { heap: 0.1, rss: 0.2, sockets: 3, failed: 0.01 };

/** Returns the first and the last value of the regression line (least squares). */
function lineThrough(values: readonly number[]): { first: number; last: number } {
  const middle = (values.length - 1) / 2;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const above = values.reduce((sum, value, at) => sum + (at - middle) * (value - mean), 0);
  const below = values.reduce((sum, _, at) => sum + (at - middle) ** 2, 0);
  const slope = above / below;
  return { first: mean - slope * middle, last: mean + slope * middle };
}

/** Judges whether a process's memory is flat, from at least three samples, one a minute. The first third is warm-up. */
export function judge(name: string, samples: readonly Held[]): Verdict {
  const warm = samples.slice(Math.floor(samples.length / 3));
  const line = (key: keyof Held) => lineThrough(warm.map((each) => each[key]));
  const part = (key: keyof Held) => line(key).last / line(key).first - 1;
  const more = (key: keyof Held) => line(key).last - line(key).first;
  const [heap, rss, sockets, handles] = [part('heap'), part('rss'), more('sockets'), more('resources')];
  const { first, last } = line('heap');
  return {
    isHeld: heap <= goals.heap && rss <= goals.rss && Math.max(sockets, handles) <= goals.sockets,
    text: `${name}: from ${(first / 1e6).toFixed(1)} to ${(last / 1e6).toFixed(1)} MB after garbage collection (${(heap * 100).toFixed(1)} % heap, RSS ${(rss * 100).toFixed(1)} %), sockets ${sockets.toFixed(1)} and handles ${handles.toFixed(1)} more`,
  };
}

/** Judges whether enough requests succeeded: failed requests hold no memory. */
export function judgeLoad(sent: number, failed: number): Verdict {
  return {
    isHeld: sent > 0 && failed <= sent * goals.failed,
    text: `${sent} requests, of which ${failed} had a wrong or no reply`,
  };
}
