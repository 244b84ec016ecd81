import { setTimeout as sleep } from 'node:timers/promises';

/** A kind of request with its relative frequency. An exception of `send` counts as an error. */
export interface Kind {
  name: string;
  weight: number;
  send(): Promise<void>;
}

export interface Outcome {
  kind: string;
  /** Time from the moment at which the request was due to the end of its reply, including any wait before sending. */
  ms: number;
  error?: string;
}

/** Returns `count` kinds by weight, in random order. */
function plan(kinds: readonly Kind[], count: number): Kind[] {
  const total = kinds.reduce((sum, { weight }) => sum + weight, 0);
  return Array.from({ length: count }, () => {
    let left = Math.random() * total;
    return kinds.find(({ weight }) => (left -= weight) < 0) ?? kinds[0]!;
  });
}

/**
 * Sends `perSecond` requests a second for `seconds` seconds, each when it is due, regardless of earlier requests. Resolves
 * when all have ended.
 */
export async function openLoop(
  kinds: readonly Kind[],
  perSecond: number,
  seconds: number,
): Promise<Outcome[]> {
  const start = performance.now();
  const running: Promise<Outcome>[] = [];
  for (const [n, kind] of plan(kinds, perSecond * seconds).entries()) {
    const due = start + (n * 1_000) / perSecond;
    const early = due - performance.now();
    if (early > 0) await sleep(early);
    running.push(
      kind.send().then(
        () => ({ kind: kind.name, ms: performance.now() - due }),
        (error: Error) => ({ kind: kind.name, ms: performance.now() - due, error: error.message }),
      ),
    );
  }
  return Promise.all(running);
}
