import { createPublicKey, type KeyObject } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { unavailable } from './http-error.ts';
import type { Logger } from './logger.ts';

/** Where public keys come from. `get` throws 503 when it cannot tell whether there is such a key. */
export interface KeySource {
  get(kid: string): Promise<KeyObject | undefined>;
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

/** In ms. */
const remoteKeyTimes = {
  /** A set older than this is fetched again, whether anybody asks or not. */
  refreshAfter: 300_000,
  /** A set that could not be fetched again is used for so long. */
  usableFor: 3_600_000,
  /** Unknown kids cost at most one fetch in this time: anyone can invent them. */
  coolDown: 10_000,
  /** The pause after a fetch that failed, for those who wait for the next. */
  retryAfter: 500,
};

/**
 * The key set at `url` (RFC 7517), held in memory and kept fresh, so that a key which is published before it is used is
 * known by then, with or without traffic. An unknown kid has it fetched again, with a cool-down; while the address does
 * not answer, the last set is used for an hour, and a kid that is not in it cannot be judged: 503.
 */
export function remoteKeys(url: string, logger: Logger, times = remoteKeyTimes): KeySource {
  let keys = new Map<string, KeyObject>();
  let fetchedAt = -Infinity;
  let triedAt = -Infinity;
  let fetching: Promise<void> | undefined;

  const failing = () => triedAt > fetchedAt;
  const isUsable = () => performance.now() - fetchedAt < times.usableFor;

  async function fetchKeys(): Promise<void> {
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(fetchTimeoutMs), redirect: 'error' });
      if (!response.ok) throw new Error(`${url} answered ${response.status}`);
      const set = keySet.parse(await response.json());
      keys = new Map(set.keys.map((key) => [key.kid, createPublicKey({ key, format: 'jwk' })]));
      fetchedAt = triedAt = performance.now();
    } catch (error) {
      if (!failing()) logger.warn({ error }, 'the signing keys could not be fetched');
      triedAt = performance.now();
    }
  }

  /** Those who ask while a fetch is under way, or waits for its turn after one that failed, share it. */
  function refresh(): Promise<void> {
    const pause = failing() ? Math.max(0, triedAt + times.retryAfter - performance.now()) : 0;
    fetching ??= sleep(pause)
      .then(fetchKeys)
      .finally(() => (fetching = undefined));
    return fetching;
  }

  const keepFresh = () => {
    const due = triedAt + (failing() ? times.coolDown : times.refreshAfter);
    if (performance.now() > due) void refresh();
  };
  keepFresh();
  setInterval(keepFresh, times.retryAfter).unref();

  return {
    async get(kid) {
      if (isUsable() && keys.has(kid)) return keys.get(kid);
      // A set that is younger has every key that signs: they are published long before.
      if (performance.now() - fetchedAt > times.coolDown) await refresh();
      if (!isUsable() || (failing() && !keys.has(kid)))
        throw unavailable('Tokens cannot be checked at the moment.');
      return keys.get(kid);
    },
  };
}
