import { setTimeout as sleep } from 'node:timers/promises';
import { Gauge } from 'prom-client';
import { z } from 'zod';
import { unavailable } from './http-error.ts';
import type { Logger } from './logger.ts';
import type { Metrics } from './metrics.ts';

const revocation = z.union([
  /** A session has ended: none of its tokens is taken any more. */
  z.strictObject({ id: z.int(), session: z.string() }),
  /** A machine client was disabled or has another secret: its tokens issued up to then are not taken. Unix seconds. */
  z.strictObject({ id: z.int(), client: z.string(), issued_until: z.int() }),
]);
export type Revocation = z.infer<typeof revocation>;

/** What the auth service tells of revocations after an id. `last` is the newest id there ever was; 0: none. */
export const revocationPage = z.strictObject({ revocations: z.array(revocation), last: z.int() });
export type RevocationPage = z.infer<typeof revocationPage>;

/** Asks for the revocations after an id. Rejects when they cannot be had. */
export type FetchRevocations = (after: number) => Promise<RevocationPage>;

/** What a checked token says of itself. `issuedAt`: Unix seconds. */
export type TokenSource = { sessionId: string } | { clientId: string; issuedAt: number };

export interface Revocations {
  /** Whether the token was revoked, as far as this process knows. Throws 503 while it never heard of any. */
  include(source: TokenSource): boolean;
}

/** Twice a second, so that a logout is known everywhere within one. */
const pollMs = 500;
const fetchTimeoutMs = 1_000;
/** Longer than any access token lives: 15 min, and a minute for clocks that differ. */
const keptMs = 16 * 60_000;

interface Entry {
  issuedUntil: number;
  heardAt: number;
}

/**
 * The revocations that are in force, held in memory and brought up to date twice a second. While `fetchSince` fails the
 * process goes on with what it knows; `revocations_age_seconds` says for how long.
 */
export function watchRevocations(fetchSince: FetchRevocations, logger: Logger, metrics: Metrics) {
  const entries = new Map<string, Entry>();
  const stopping = new AbortController();
  let last = 0;
  let heardAt = -Infinity;
  const startedAt = performance.now();

  const age: Gauge = new Gauge({
    name: 'revocations_age_seconds',
    help: 'Time since the revocations were last brought up to date',
    registers: [],
    collect: () => void age.set((performance.now() - Math.max(heardAt, startedAt)) / 1000),
  });
  metrics.registry.registerMetric(age);

  function forget(now: number): void {
    for (const [key, entry] of entries) {
      // In the order in which they came.
      if (entry.heardAt > now - keptMs) return;
      entries.delete(key);
    }
  }

  async function update(): Promise<void> {
    let page = await fetchSince(last);
    // The database was replaced by an older one: what came after is gone, and ids begin anew.
    if (page.last < last) page = await fetchSince(0);
    const now = performance.now();
    for (const revoked of page.revocations) {
      const key = 'session' in revoked ? `session:${revoked.session}` : `client:${revoked.client}`;
      const issuedUntil = 'session' in revoked ? Infinity : revoked.issued_until;
      entries.delete(key);
      entries.set(key, { issuedUntil, heardAt: now });
    }
    forget(now);
    last = page.last;
    heardAt = now;
  }

  async function run(): Promise<void> {
    let failing = false;
    while (!stopping.signal.aborted) {
      try {
        await update();
        failing = false;
      } catch (error) {
        if (!failing) logger.warn({ error }, 'revocations could not be fetched; going on with what is known');
        failing = true;
      }
      await sleep(pollMs, undefined, { signal: stopping.signal }).catch(() => {});
    }
  }
  const running = run();

  return {
    include(source: TokenSource): boolean {
      if (heardAt === -Infinity) throw unavailable('Tokens cannot be checked at the moment.');
      if ('sessionId' in source) return entries.has(`session:${source.sessionId}`);
      const entry = entries.get(`client:${source.clientId}`);
      return entry !== undefined && source.issuedAt <= entry.issuedUntil;
    },
    close(): Promise<void> {
      stopping.abort();
      return running;
    },
  };
}

/** Fetches them from the auth service's internal listener at `url`. */
export function remoteRevocations(url: string): FetchRevocations {
  return async (after) => {
    const signal = AbortSignal.timeout(fetchTimeoutMs);
    const response = await fetch(`${url}/revocations?after=${after}`, { signal, redirect: 'error' });
    if (!response.ok) throw new Error(`${url}/revocations answered ${response.status}`);
    return revocationPage.parse(await response.json());
  };
}
