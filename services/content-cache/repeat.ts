import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '@content-platform/chassis';
import { CacheError } from './cache/index.ts';

interface RepeatOptions {
  intervalMs: number;
  signal: AbortSignal;
  logger: Logger;
  /** The log message of the first of consecutive failures. Errors of the cache are not logged: its state is. */
  failure: string;
}

/** Runs `work` now and after each pause of `intervalMs`, until `signal` aborts. Never rejects. */
export async function repeat(work: () => Promise<void>, options: RepeatOptions): Promise<void> {
  const { intervalMs, signal, logger, failure } = options;
  let failing = false;
  while (!signal.aborted) {
    try {
      await work();
      failing = false;
    } catch (error) {
      if (!failing && !(error instanceof CacheError)) logger.warn({ error }, failure);
      failing = true;
    }
    await sleep(intervalMs, undefined, { signal }).catch(() => undefined);
  }
}
