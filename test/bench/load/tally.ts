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
  const good: number[] = [];
  const refused: number[] = [];
  const counts = { due: 0, gaveUp: 0, unsent: 0, broken: 0, withoutRetryAfter: 0 };

  return {
    counts,
    note({ status, retryAfter }: Reply, dueAt: number, now: number): void {
      if (status === 0) return void (counts.broken += 1);
      statuses[status] = (statuses[status] ?? 0) + 1;
      (status === 200 ? good : refused).push(now - dueAt);
      if (status !== 200 && !retryAfter) counts.withoutRetryAfter += 1;
      if (status === 200 && now < start + seconds * 1_000) goodInTheRun += 1;
    },
    seen(endedAt: number): Seen {
      const goodput = goodInTheRun / seconds;
      const inTime = good.filter((ms) => ms <= targetMs).length;
      return {
        ...counts,
        statuses,
        goodput,
        goodputInTime: good.length === 0 ? 0 : (goodput * inTime) / good.length,
        good: quantiles(good),
        refused: quantiles(refused),
        endedAt,
      };
    },
  };
}
