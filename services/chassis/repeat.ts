import { setTimeout as sleep } from 'node:timers/promises';
import type { z } from 'zod';
import type { Logger } from './logger.ts';
import type { ServiceFetch } from './service-tokens.ts';

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
    await sleep(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted());
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

const fetchTimeoutMs = 2_000;

/** A page of one of auth's feeds: the entries after a position, oldest first, and the newest position of the feed. */
export interface FeedPage<Entry> {
  entries: (Entry & { position: number })[];
  last: number;
}

export type FetchPage<Entry> = (after: number) => Promise<FeedPage<Entry>>;

/** Fetches pages of the feed `url` of auth's internal listener. Rejects if auth is unavailable. */
export function fetchFeedFrom<Entry>(
  url: string,
  schema: z.ZodType<FeedPage<Entry>>,
  fetchAsService: ServiceFetch,
): FetchPage<Entry> {
  return async (after) => {
    const signal = AbortSignal.timeout(fetchTimeoutMs);
    const response = await fetchAsService(`${url}?after=${after}`, { signal });
    if (!response.ok) throw new Error(`${url} answered ${response.status}`);
    return schema.parse(await response.json());
  };
}

interface FeedFollower<Entry> extends RepeatOptions {
  fetchPage: FetchPage<Entry>;
  /** Returns the position up to which `apply` was called. */
  position(): Promise<number>;
  /** Applies the entries and stores the position that it has reached. Called again with them after a failure. */
  apply(entries: readonly (Entry & { position: number })[], position: number): Promise<void>;
}

/** Applies the entries of a feed until the returned function is called. Retries after failures. */
export function followFeed<Entry>(follower: FeedFollower<Entry>): () => Promise<void> {
  const { fetchPage, position, apply, ...options } = follower;

  async function readOnce(): Promise<boolean> {
    const after = await position();
    let { entries, last } = await fetchPage(after);
    // Auth's database was restored from a backup, so that positions are used again.
    if (last < after) ({ entries, last } = await fetchPage(0));
    else if (entries.length === 0) return false;
    const reached = entries.at(-1)?.position ?? last;
    await apply(entries, reached);
    return reached < last;
  }

  async function readAll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && (await readOnce()));
  }
  return repeat(readAll, options);
}
