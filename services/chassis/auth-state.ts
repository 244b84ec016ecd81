// What a process fetches from auth to check tokens without asking for each: the signing keys and the revocations.
import { createPublicKey, type KeyObject } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { publicKey } from '@content-platform/contract/schemas';
import { unavailable } from './http-error.ts';
import type { Logger } from './logger.ts';
import type { Metrics } from './metrics.ts';
import { repeat } from './repeat.ts';

/** A source of public keys. `get` throws 503 if it is unknown whether the key exists. */
export interface KeySource {
  get(kid: string): Promise<KeyObject | undefined>;
  /** Whether the key is known and not withdrawn; never fetches. */
  has(kid: string): boolean;
}

const authUnavailable = () =>
  unavailable('Access tokens cannot be checked: the auth service is unavailable. Retry later.');

const keysTimeoutMs = 2_000;
/** Shorter than `keysTimeoutMs`, because the process is not ready until it has the keys and the revocations. */
const firstKeysTimeoutMs = 1_000;
const firstRetryMs = 50;

/** A set older than this is fetched again, with or without traffic. */
const refreshAfterMs = 300_000;
/** Age up to which a set is used while fetching fails. */
const usableForMs = 3_600_000;
/**
 * For this time after a successful fetch, a kid that auth does not publish causes no further fetch: anyone can invent
 * kids. The background refresh pauses for the same time after a failed fetch.
 */
const coolDownMs = 10_000;
/** Minimum pause after a failed fetch, and interval at which the background refresh checks whether it is due. */
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
      const timeout = AbortSignal.timeout(isLoaded() ? keysTimeoutMs : firstKeysTimeoutMs);
      const response = await fetch(url, { signal: AbortSignal.any([timeout, signal]), redirect: 'error' });
      if (!response.ok) throw new Error(`${url} answered ${response.status}`);
      const set = z.object({ keys: z.array(publicKey) }).parse(await response.json());
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
    /** Sets the ids of the keys that auth publishes. Other keys count as withdrawn; with undefined (old auth), none. */
    setPublished(kids: readonly string[] | undefined): void {
      published = kids && new Set(kids);
      if (kids?.some((kid) => !keys.has(kid))) void refresh();
    },
    async get(kid: string): Promise<KeyObject | undefined> {
      if (has(kid)) return keys.get(kid);
      // A set younger than coolDownMs has every planned key: auth publishes a key 10 minutes before it signs with it. Only
      // after `rotate-keys --now` the set and the published kids can differ, for about a second: then 503, not 401.
      if (published?.has(kid) || performance.now() - fetchedAt > coolDownMs) await refresh();
      if (has(kid)) return keys.get(kid);
      if (!isUsable() || failing() || keys.has(kid) || published?.has(kid)) throw authUnavailable();
      return undefined;
    },
    close(): Promise<void> {
      stopping.abort();
      return running;
    },
  };
}

const revocation = z.union([
  /** A session has ended: all of its tokens are revoked. */
  z.object({ id: z.int(), session: z.string() }),
  /** A client was disabled or got a new secret: its tokens issued until then (Unix seconds) are revoked. */
  z.object({ id: z.int(), client: z.string(), issued_until: z.int() }),
]);

/**
 * Reply of auth: the revocations after an id, the newest id ever used (0: none), the kids of all valid signing keys, and
 * the version of this state. Releases before 0.1.0 omit the last two. Fields of a newer auth are ignored.
 */
export const revocationPage = z.object({
  revocations: z.array(revocation),
  last: z.int(),
  keys: z.array(z.string()).optional(),
  version: z.string().optional(),
});
export type RevocationPage = z.infer<typeof revocationPage>;

/** Fetches the revocations after an id; may wait for news while `known` is the newest version. Rejects if auth is unavailable. */
export type FetchRevocations = (after: number, known: string, signal: AbortSignal) => Promise<RevocationPage>;

/** The session or client of a token. `issuedAt`: Unix seconds. */
export type TokenSource = { sessionId: string } | { clientId: string; issuedAt: number };

export interface Revocations {
  /** Whether the token is known to be revoked. Throws 503 until the first fetch has succeeded. */
  isRevoked(source: TokenSource): boolean;
}

/** Minimum time between the beginnings of two fetches: every process must learn of a logout within a second. */
const pollMs = 500;
/** auth waits up to 2 s for news. */
const revocationsTimeoutMs = 3_000;
/** Longest lifetime of an access token: 15 min, plus a minute for differing clocks. Revocations are kept for this time. */
export const maxTokenLifetimeMs = 16 * 60_000;

/**
 * Holds the revocations in force and updates them up to twice a second. While `fetchSince` fails, the last list stays
 * in use; `revocations_age_seconds` is its age. `onKeys` gets the valid kids of each reply.
 */
export function watchRevocations(
  fetchSince: FetchRevocations,
  logger: Logger,
  metrics: Metrics,
  onKeys: (kids: readonly string[] | undefined) => void = () => {},
) {
  const entries = new Map<string, { issuedUntil: number; receivedAt: number }>();
  let last = 0;
  let version = '';
  let begunAt = 0;
  let receivedAt = -Infinity;
  const startedAt = performance.now();
  const isLoaded = () => receivedAt > -Infinity;

  metrics.measured(
    'revocations_age_seconds',
    'Time since the revocations were last brought up to date',
    () => (performance.now() - Math.max(receivedAt, startedAt)) / 1000,
  );

  function deleteOld(now: number): void {
    for (const [key, entry] of entries) {
      // The map is ordered by age.
      if (entry.receivedAt > now - maxTokenLifetimeMs) return;
      entries.delete(key);
    }
  }

  async function update(signal: AbortSignal): Promise<void> {
    begunAt = performance.now();
    let page = await fetchSince(last, version, signal);
    // The database was restored from a backup and assigns the ids again.
    if (page.last < last) page = await fetchSince(0, '', signal);
    const now = performance.now();
    for (const revoked of page.revocations) {
      const key = 'session' in revoked ? `session:${revoked.session}` : `client:${revoked.client}`;
      const issuedUntil = 'session' in revoked ? Infinity : revoked.issued_until;
      entries.delete(key);
      entries.set(key, { issuedUntil, receivedAt: now });
    }
    deleteOld(now);
    onKeys(page.keys);
    ({ last, version = '' } = page);
    receivedAt = now;
  }

  const stop = repeat(update, {
    everyMs: () => (isLoaded() ? Math.max(0, begunAt + pollMs - performance.now()) : firstRetryMs),
    logger,
    failure: 'revocations not fetched; using the last list',
  });

  return {
    isLoaded,
    isRevoked(source: TokenSource): boolean {
      if (!isLoaded()) throw authUnavailable();
      if ('sessionId' in source) return entries.has(`session:${source.sessionId}`);
      const entry = entries.get(`client:${source.clientId}`);
      return entry !== undefined && source.issuedAt <= entry.issuedUntil;
    },
    close: stop,
  };
}

/** Fetches revocations from the auth service's internal listener at `url`. */
export function fetchRevocationsFrom(url: string): FetchRevocations {
  return async (after, known, stopping) => {
    const signal = AbortSignal.any([stopping, AbortSignal.timeout(revocationsTimeoutMs)]);
    // An auth service of an older release ignores `keys` and `known`.
    const query = new URLSearchParams({ after: String(after), keys: 'true', known });
    const response = await fetch(`${url}/revocations?${query}`, { signal, redirect: 'error' });
    if (!response.ok) throw new Error(`${url}/revocations answered ${response.status}`);
    return revocationPage.parse(await response.json());
  };
}
