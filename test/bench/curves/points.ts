import type { Quantiles } from '../load/job.ts';

/** One measurement; CPU of one request in each process, in µs. */
export interface Round {
  cpu: Record<string, number>;
  perSecond: number;
  times: Quantiles;
  /** Replies other than 200, and requests that had none. */
  failed: number;
}

/** One point of a curve. */
export interface Point {
  at: number;
  measure: () => Promise<Round>;
  rounds: Round[];
}

export interface Curve {
  name: string;
  /** What grows. */
  unit: string;
  /** How it was asked. */
  how: string;
  points: Point[];
}

/** Each point has its turn in each round, and nobody always follows the same one. */
export async function measureAll({ points }: Curve, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    for (let turn = 0; turn < points.length; turn += 1) {
      const point = points[(turn + round) % points.length]!;
      point.rounds.push(await point.measure());
    }
  }
}
