import { z } from 'zod';
import { unavailable } from './http-error.ts';
import type { Logger } from './logger.ts';
import type { Metrics } from './metrics.ts';
import { repeat } from './repeat.ts';

const revocation = z.union([
  /** A session has ended: all of its tokens are revoked. */
  z.strictObject({ id: z.int(), session: z.string() }),
  /** A client was disabled or got a new secret: its tokens issued until then (Unix seconds) are revoked. */
  z.strictObject({ id: z.int(), client: z.string(), issued_until: z.int() }),
]);
export type Revocation = z.infer<typeof revocation>;

/**
 * Reply of auth: the revocations after an id, the newest id ever used (0: none), the kids of all valid signing keys, and
 * the version of this state. Releases before 0.1.0 omit the last two.
 */
export const revocationPage = z.strictObject({
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

/** Time between the beginnings of two fetches: every process must learn of a logout within a second. */
const pollMs = 500;
/** Shorter than the later interval, because the process is not ready until the first fetch. */
const firstRetryMs = 50;
/** auth waits up to 2 s for news. */
const fetchTimeoutMs = 3_000;
/** Lifetime of an access token, 15 min, plus a minute for differing clocks. */
const retentionMs = 16 * 60_000;

interface Entry {
  issuedUntil: number;
  receivedAt: number;
}

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
  const entries = new Map<string, Entry>();
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
      if (entry.receivedAt > now - retentionMs) return;
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
      if (!isLoaded())
        throw unavailable('Access tokens cannot be checked: the auth service is unavailable. Retry later.');
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
    const signal = AbortSignal.any([stopping, AbortSignal.timeout(fetchTimeoutMs)]);
    // An auth service of an older release ignores `keys` and `known`.
    const query = new URLSearchParams({ after: String(after), keys: 'true', known });
    const response = await fetch(`${url}/revocations?${query}`, { signal, redirect: 'error' });
    if (!response.ok) throw new Error(`${url}/revocations answered ${response.status}`);
    return revocationPage.parse(await response.json());
  };
}
