import { createPublicKey, type KeyObject } from 'node:crypto';
import { z } from 'zod';
import { unavailable } from './http-error.ts';
import type { Logger } from './logger.ts';

/** Where public keys come from. `get` throws 503 when there is no set of keys to look into. */
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
/** A set older than this is fetched again, in the background. */
const refreshAfterMs = 300_000;
/** A set that could not be fetched again is used for so long. */
const usableForMs = 3_600_000;
/** Unknown kids cost at most one fetch in this time: anyone can invent them. */
const coolDownMs = 10_000;

/**
 * The key set at `url` (RFC 7517), cached. An unknown kid has it fetched again, with a cool-down; while the address
 * does not answer, the last set is used for an hour.
 */
export function remoteKeys(url: string, logger: Logger): KeySource {
  let keys = new Map<string, KeyObject>();
  let fetchedAt = -Infinity;
  let triedAt = -Infinity;
  let fetching: Promise<void> | undefined;

  async function fetchKeys(): Promise<void> {
    triedAt = performance.now();
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(fetchTimeoutMs), redirect: 'error' });
      if (!response.ok) throw new Error(`${url} answered ${response.status}`);
      const set = keySet.parse(await response.json());
      keys = new Map(set.keys.map((key) => [key.kid, createPublicKey({ key, format: 'jwk' })]));
      fetchedAt = performance.now();
    } catch (error) {
      logger.warn({ error }, 'the signing keys could not be fetched');
    }
  }

  /** Those who ask while a fetch is under way share it. */
  function refresh(): Promise<void> {
    fetching ??= fetchKeys().finally(() => (fetching = undefined));
    return fetching;
  }

  return {
    async get(kid) {
      const age = performance.now() - fetchedAt;
      const sinceTry = performance.now() - triedAt;
      const known = keys.get(kid);
      if (known && age < usableForMs) {
        if (age > refreshAfterMs && sinceTry > coolDownMs) void refresh();
        return known;
      }
      // Before the first set there is nothing to go on with, so the cool-down is short.
      const pause = fetchedAt === -Infinity ? 500 : coolDownMs;
      if (fetching || sinceTry > pause) await refresh();
      if (performance.now() - fetchedAt > usableForMs)
        throw unavailable('Tokens cannot be checked at the moment.');
      return keys.get(kid);
    },
  };
}
