import { percentile } from '../percentiles.ts';
import type { Reply } from './connection.ts';
import { targetMs, type Quantiles, type Seen } from './job.ts';

function quantiles(times: number[]): Quantiles | undefined {
  if (times.length === 0) return undefined;
  const at = (part: number) => percentile(times, part);
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
}

/** Counts what becomes of requests, from `start` on (performance.now()). */
export function createTally(start: number, seconds: number) {
  const statuses: Record<string, number> = {};
  const goodEachSecond = Array.from({ length: seconds }, () => 0);
  const good: number[] = [];
  const refused: number[] = [];
  const late: number[] = [];
  const counts = { due: 0, gaveUp: 0, unsent: 0, broken: 0, withoutRetryAfter: 0 };

  return {
    counts,
    late,
    note({ status, retryAfter }: Reply, dueAt: number, now: number): void {
      if (status === 0) return void (counts.broken += 1);
      statuses[status] = (statuses[status] ?? 0) + 1;
      (status === 200 ? good : refused).push(now - dueAt);
      if (status !== 200 && !retryAfter) counts.withoutRetryAfter += 1;
      const second = Math.floor((now - start) / 1_000);
      if (status === 200 && second < seconds) goodEachSecond[second]! += 1;
    },
    seen(endedAt: number): Seen {
      const goodput = goodEachSecond.reduce((sum, count) => sum + count, 0) / seconds;
      const inTime = good.filter((ms) => ms <= targetMs).length;
      return {
        ...counts,
        answered: good.length + refused.length,
        statuses,
        goodput,
        goodputInTime: good.length === 0 ? 0 : (goodput * inTime) / good.length,
        goodEachSecond,
        good: quantiles(good),
        refused: quantiles(refused),
        endedAt,
        late: quantiles(late)?.p99 ?? 0,
      };
    },
  };
}
