import { createPublicKey, type KeyObject } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { unavailable } from './http-error.ts';
import type { Logger } from './logger.ts';

/** A source of public keys. `get` throws 503 if it is unknown whether the key exists. */
export interface KeySource {
  get(kid: string): Promise<KeyObject | undefined>;
  /** Whether the key is known and not withdrawn; never fetches. */
  has(kid: string): boolean;
}

const keySet = z.object({
  keys: z.array(
    z.object({
      kty: z.literal('RSA'),
      use: z.literal('sig'),
      alg: z.literal('RS256'),
      kid: z.string(),
      n: z.string(),
      e: z.string(),
    }),
  ),
});

const fetchTimeoutMs = 2_000;
/** Shorter than the later interval, because the process is not ready until it has the first set. */
const firstFetchTimeoutMs = 1_000;
const firstRetryMs = 50;

/** A set older than this is fetched again, with or without traffic. */
const refreshAfterMs = 300_000;
/** Age up to which a set is used while fetching fails. */
const usableForMs = 3_600_000;
/** Unknown kids cause at most one fetch in this time, because anyone can invent them. */
const coolDownMs = 10_000;
const retryAfterMs = 500;

export type JwksClient = ReturnType<typeof createJwksClient>;

/**
 * Holds the key set at `url` (RFC 7517) and refreshes it in the background, so that a key is known before it signs. An
 * unknown kid causes a refresh. While `url` is unavailable, the last set is used for an hour, and an unknown kid
 * throws 503.
 */
export function createJwksClient(url: string, logger: Logger) {
  const stopping = new AbortController();
  const { signal } = stopping;
  let keys = new Map<string, KeyObject>();
  let fetchedAt = -Infinity;
  let triedAt = -Infinity;
  let fetching: Promise<void> | undefined;
  let published: ReadonlySet<string> | undefined;

  const isLoaded = () => fetchedAt > -Infinity;
  const failing = () => triedAt > fetchedAt;
  const isUsable = () => performance.now() - fetchedAt < usableForMs;
  const isWithdrawn = (kid: string) => published?.has(kid) === false;
  const has = (kid: string) => isUsable() && keys.has(kid) && !isWithdrawn(kid);

  async function fetchKeys(): Promise<void> {
    try {
      const timeout = AbortSignal.timeout(isLoaded() ? fetchTimeoutMs : firstFetchTimeoutMs);
      const response = await fetch(url, { signal: AbortSignal.any([timeout, signal]), redirect: 'error' });
      if (!response.ok) throw new Error(`${url} answered ${response.status}`);
      const set = keySet.parse(await response.json());
      keys = new Map(set.keys.map((key) => [key.kid, createPublicKey({ key, format: 'jwk' })]));
      fetchedAt = triedAt = performance.now();
    } catch (error) {
      if (!failing() && !signal.aborted)
        logger.warn({ error }, 'signing keys not fetched; using the last set');
      triedAt = performance.now();
    }
  }

  /** Concurrent calls share one fetch, which waits for the pause after a failed one. */
  function refresh(): Promise<void> {
    const waitMs = isLoaded() ? retryAfterMs : firstRetryMs;
    const pause = failing() ? Math.max(0, triedAt + waitMs - performance.now()) : 0;
    fetching ??= sleep(pause, undefined, { signal, ref: false })
      .then(fetchKeys, () => undefined)
      .finally(() => (fetching = undefined));
    return fetching;
  }

  async function refreshUntilClosed(): Promise<void> {
    while (!isLoaded() && !signal.aborted) await refresh();
    while (!signal.aborted) {
      const due = triedAt + (failing() ? coolDownMs : refreshAfterMs);
      if (performance.now() > due) await refresh();
      await sleep(retryAfterMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
  const running = refreshUntilClosed();

  return {
    isLoaded,
    has,
    /** Sets the kids that auth publishes; others count as withdrawn. undefined: an older release, only the set counts. */
    setPublished(kids: readonly string[] | undefined): void {
      published = kids && new Set(kids);
      if (kids?.some((kid) => !keys.has(kid))) void refresh();
    },
    async get(kid: string): Promise<KeyObject | undefined> {
      if (has(kid)) return keys.get(kid);
      if (keys.has(kid) && isWithdrawn(kid)) return undefined;
      // A younger set has every planned signing key, because a planned key is published 10 minutes before it signs.
      if (performance.now() - fetchedAt > coolDownMs) await refresh();
      if (!isUsable() || (failing() && !keys.has(kid)))
        throw unavailable('Access tokens cannot be checked: the auth service is unavailable. Retry later.');
      return isWithdrawn(kid) ? undefined : keys.get(kid);
    },
    close(): Promise<void> {
      stopping.abort();
      return running;
    },
  };
}
