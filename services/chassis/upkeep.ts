import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from './logger.ts';
import type { Database } from './postgres.ts';

/** What is to be deleted, each under the name of its rows. */
export type UpkeepSteps = (query: Database['query']) => Record<string, () => Promise<void>>;

/**
 * Deletes now and every hour what nobody will ask about any more. Returns what ends it, after the statement that is under
 * way.
 */
export function startUpkeep(
  ask: Database['query'],
  stepsOf: UpkeepSteps,
  logger: Logger,
  everyMs = 3_600_000,
): () => Promise<void> {
  const stopping = new AbortController();
  const { signal } = stopping;
  /** A backlog is many statements: none of them begins when the process is about to stop. */
  const query: Database['query'] = async (...statement) => {
    signal.throwIfAborted();
    return ask(...statement);
  };
  const steps = stepsOf(query);

  /** Each by itself: one that fails keeps none of the others from their end. */
  async function tidy(): Promise<void> {
    for (const [rows, forget] of Object.entries(steps)) {
      await forget().catch((error: unknown) => {
        if (signal.aborted) return;
        logger.warn({ error, rows }, 'old rows were not deleted; in an hour it is tried again');
      });
    }
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await tidy();
      await sleep(everyMs, undefined, { signal }).catch(() => {});
    }
  }
  const running = run();
  return () => {
    stopping.abort();
    return running;
  };
}
