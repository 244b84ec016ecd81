import { setTimeout as sleep } from 'node:timers/promises';

/** Calls `work` `rate` times a second for `seconds`, or until `signal` aborts. Waits for all calls; times in ms. */
export async function steadyTraffic(
  rate: number,
  seconds: number,
  work: () => Promise<unknown>,
  signal?: AbortSignal,
) {
  const start = performance.now();
  const took: number[] = [];
  const failures: string[] = [];
  const one = async (): Promise<void> => {
    const began = performance.now();
    try {
      await work();
      took.push(performance.now() - began);
    } catch (error) {
      failures.push((error as Error).message);
    }
  };
  const all: Promise<void>[] = [];
  for (let index = 0; index < rate * seconds; index += 1) {
    const due = start + (index * 1_000) / rate;
    await sleep(Math.max(0, due - performance.now()), undefined, { signal }).catch(() => undefined);
    if (signal?.aborted) break;
    all.push(one());
  }
  await Promise.all(all);
  took.sort((a, b) => a - b);
  const [median = 0, slowest = 0] = [took[Math.floor(took.length / 2)], took.at(-1)];
  return { done: took.length, failures, median, slowest, elapsed: performance.now() - start };
}
