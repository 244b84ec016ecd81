import { median } from '../percentiles.ts';
import { percentile } from '../percentiles.ts';
import type { Clears } from './clears.ts';
import type { HitRound } from './hits.ts';
import type { Race } from './race.ts';
import type { Storm } from './storm.ts';

/** What was measured of one cache. */
export interface CacheResult {
  name: string;
  does: string;
  rounds: HitRound[];
  /** In one process, and across two. */
  storms: { one: Storm[]; two: Storm[] };
  race: Race;
}

export interface ClearResult {
  name: string;
  does: string;
  sizes: Clears[];
}

const table = (head: string[], rows: string[][]): string =>
  [head, ...rows]
    .map(([first, ...rest]) => `  ${first!.padEnd(20)}${rest.map((cell) => cell.padStart(14)).join('')}`)
    .join('\n');

const together = ({ gateway, service, redis }: HitRound): number => gateway + service + redis;

/** Medians of the rounds. */
export function hitTable(results: readonly CacheResult[]): string {
  const cpuOf = ({ rounds }: CacheResult): number => median(rounds.map(together));
  const head = [
    '',
    'gateway µs',
    'service µs',
    'Redis µs',
    'all by ours',
    'a second',
    'p50 ms',
    'p99 ms',
    'stale reads',
  ];
  const rows = results.map((result) => {
    const of = (pick: (round: HitRound) => number, digits = 0) =>
      median(result.rounds.map(pick)).toFixed(digits);
    return [
      result.name,
      of(({ gateway }) => gateway),
      of(({ service }) => service),
      of(({ redis }) => redis),
      (cpuOf(result) / cpuOf(results[0]!)).toFixed(2),
      of(({ perSecond }) => perSecond),
      of(({ p50 }) => p50, 1),
      of(({ p99 }) => p99, 1),
      `${result.race.stale} of ${result.race.reads}`,
    ];
  });
  return table(head, rows);
}

/** The most reads of the database that any storm needed, and the median of how long it took. */
export function stormTable(results: readonly CacheResult[]): string {
  const cells = (storms: readonly Storm[]) => [
    String(
      percentile(
        storms.map(({ reads }) => reads),
        1,
      ),
    ),
    median(storms.map(({ ms }) => ms)).toFixed(0),
  ];
  const head = ['', 'one process', 'ms', 'two', 'ms'];
  return table(
    head,
    results.map(({ name, storms: { one, two } }) => [name, ...cells(one), ...cells(two)]),
  );
}

export function clearTable(results: readonly ClearResult[]): string {
  const head = ['', 'keys', 'p50 ms', 'p99 ms', 'clears', 'Redis µs each', 'PING p99 ms', 'max ms'];
  const rows = results.flatMap(({ name, sizes }) =>
    sizes.map(({ keys, times, redisCpu, ping }) => [
      name,
      String(keys),
      times.p50.toFixed(1),
      times.p99.toFixed(1),
      String(times.count),
      redisCpu.toFixed(0),
      ping.p99.toFixed(1),
      ping.max.toFixed(1),
    ]),
  );
  return table(head, rows);
}
