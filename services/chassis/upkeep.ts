import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from './logger.ts';
import type { Database } from './postgres.ts';

/** What is to be deleted, each under the name of its rows. */
export type UpkeepSteps = (query: Database['query']) => Record<string, () => Promise<void>>;

/**
 * Deletes what nobody will ask about any more, until `signal` says stop: a backlog is many statements. What fails is in
 * the log, and keeps nothing else from its end.
 */
export async function tidy(
  ask: Database['query'],
  stepsOf: UpkeepSteps,
  logger: Logger,
  signal: AbortSignal,
): Promise<void> {
  const query: Database['query'] = async (...statement) => {
    signal.throwIfAborted();
    return ask(...statement);
  };
  for (const [rows, forget] of Object.entries(stepsOf(query))) {
    await forget().catch((error: unknown) => {
      if (signal.aborted) return;
      logger.warn({ error, rows }, 'old rows were not deleted; in an hour it is tried again');
    });
  }
}

/** Tidies up now and every hour. Returns what ends it, after the statement that is under way. */
export function startUpkeep(
  query: Database['query'],
  stepsOf: UpkeepSteps,
  logger: Logger,
  everyMs = 3_600_000,
): () => Promise<void> {
  const stopping = new AbortController();
  const { signal } = stopping;

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await tidy(query, stepsOf, logger, signal);
      await sleep(everyMs, undefined, { signal }).catch(() => {});
    }
  }
  const running = run();
  return () => {
    stopping.abort();
    return running;
  };
}
