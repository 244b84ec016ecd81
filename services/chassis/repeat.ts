import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from './logger.ts';

const firstPauseMs = 50;
const longestPauseMs = 1_000;

/** Repeats `attempt` until it succeeds, with pauses of 50 ms doubling to 1 s. Throws only the reason of `signal`. */
export async function retryUntilAborted<T>(
  signal: AbortSignal,
  attempt: () => Promise<T>,
  onFirstFailure: (error: unknown) => void,
): Promise<T> {
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    signal.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      if (pauseMs === firstPauseMs) onFirstFailure(error);
    }
    await sleep(pauseMs, undefined, { signal });
  }
}

interface RepeatOptions {
  /** Pause after each run, in ms. */
  everyMs: number | (() => number);
  /** Pause before the first run, in ms; default: none. */
  firstMs?: number;
  logger: Logger;
  /** Log message of the first of consecutive failures. */
  failure: string;
}

/** Runs `work` repeatedly. The returned function aborts the signal of `work`, and resolves when it has ended. */
export function repeat(
  work: (signal: AbortSignal) => Promise<unknown>,
  { everyMs, firstMs = 0, logger, failure }: RepeatOptions,
): () => Promise<void> {
  const stopping = new AbortController();
  const { signal } = stopping;
  const pause = (ms: number) => sleep(ms, undefined, { signal }).catch(() => {});

  async function run(): Promise<void> {
    let failing = false;
    if (firstMs > 0) await pause(firstMs);
    while (!signal.aborted) {
      try {
        await work(signal);
        failing = false;
      } catch (error) {
        if (!failing && !signal.aborted) logger.warn({ error }, failure);
        failing = true;
      }
      await pause(typeof everyMs === 'number' ? everyMs : everyMs());
    }
  }
  const running = run();
  return () => {
    stopping.abort();
    return running;
  };
}
