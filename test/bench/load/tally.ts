import { percentile } from '../percentiles.ts';
import type { Reply } from './connection.ts';
import { targetMs, type Quantiles, type Seen } from './job.ts';

function quantiles(times: number[]): Quantiles | undefined {
  if (times.length === 0) return undefined;
  return { p50: percentile(times, 0.5), p99: percentile(times, 0.99) };
}

/** Counts the outcomes of requests from `start` (performance.now()). */
export function createTally(start: number, seconds: number) {
  const statuses: Record<string, number> = {};
  let goodInTheRun = 0;
  let inTimeInTheRun = 0;
  const good: number[] = [];
  const refused: number[] = [];
  const firstRefused: number[] = [];
  const counts = { due: 0, gaveUp: 0, unsent: 0, broken: 0, withoutRetryAfter: 0 };

  return {
    counts,
    /** @param wasRefused whether an earlier request on the connection was refused */
    note({ status, retryAfter }: Reply, dueAt: number, now: number, wasRefused: boolean): void {
      if (status === 0) return void (counts.broken += 1);
      statuses[status] = (statuses[status] ?? 0) + 1;
      (status === 200 ? good : refused).push(now - dueAt);
      if (status !== 200 && !wasRefused) firstRefused.push(now - dueAt);
      if (status !== 200 && !retryAfter) counts.withoutRetryAfter += 1;
      if (status !== 200 || now >= start + seconds * 1_000) return;
      goodInTheRun += 1;
      if (now - dueAt <= targetMs) inTimeInTheRun += 1;
    },
    seen(endedAt: number): Seen {
      return {
        ...counts,
        statuses,
        goodput: goodInTheRun / seconds,
        goodputInTime: inTimeInTheRun / seconds,
        good: quantiles(good),
        refused: quantiles(refused),
        firstRefused: quantiles(firstRefused),
        endedAt,
      };
    },
  };
}
