import { setTimeout as sleep } from 'node:timers/promises';

/** One kind of request: how often it comes, relative to the others, and what sends it; a throw is an error. */
export interface Kind {
  name: string;
  weight: number;
  send(): Promise<void>;
}

export interface Outcome {
  kind: string;
  /** From the moment at which it was due to the end of its reply: a request that had to wait is not forgiven. */
  ms: number;
  error?: string;
}

/** `count` kinds at their weights, in random order. */
function plan(kinds: readonly Kind[], count: number): Kind[] {
  const total = kinds.reduce((sum, { weight }) => sum + weight, 0);
  return Array.from({ length: count }, () => {
    let left = Math.random() * total;
    return kinds.find(({ weight }) => (left -= weight) < 0) ?? kinds[0]!;
  });
}

/**
 * Sends `perSecond` requests a second for so many seconds, each when it is due, however long the others take. Resolves
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
