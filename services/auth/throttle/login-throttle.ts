import { createHash } from 'node:crypto';
import { HttpError } from '@content-platform/chassis';
import { type Backoff, reserve, reset, type UpdateFailures } from './failures.ts';
import { networkOf } from './network.ts';

export const loginBackoff: Backoff = { windowMs: 15 * 60_000, shortestMs: 1_000, longestMs: 15 * 60_000 };

/** Failures before the waits begin: of one account from one network, of one network, of an account from a known network. */
const limits = { account: 10, network: 200, known: 100 };

export interface Attempt {
  /** Names the account in the same way however its name was typed, and also an account that does not exist. */
  account: string;
  address: string;
  /** Whether the account has a session from this network (in CIDR form). Called only if the attempt would have to wait. */
  isKnown(network: string): Promise<boolean>;
}

export interface ThrottledOutcome<T> {
  outcome: T;
  /** The error to reply with to a wrong attempt from a known network, if other networks would have had to wait. */
  limited: HttpError<'rate_limited'> | undefined;
}

export type LoginThrottle = ReturnType<typeof createLoginThrottle>;

function tooMany(waitMs: number): HttpError<'rate_limited'> {
  const message = 'Too many failed attempts; Retry-After says when to come again.';
  const headers = { 'Retry-After': String(Math.ceil(waitMs / 1000)) };
  return new HttpError('rate_limited', message, { headers });
}

/**
 * Slows down the guessing of passwords and client secrets without locking accounts: NIST SP 800-63B-4 §3.2.2, and ASVS
 * 5.0 6.1.1 and 6.3.1. It guarantees:
 *
 * - An attempt is counted as a failure before its check starts, so that simultaneous attempts cannot pass a limit.
 * - From the limit on each failure is followed by a wait, which doubles from 1 s to 15 min.
 * - During a wait nothing is checked and nothing is counted.
 * - Failures are forgotten 15 min after the first one, or from the limit on 15 min after the last wait.
 * - A known network may try during the wait, or its neighbours could keep the account out. It has a limit of its own,
 *   or the neighbours could guess without end. Its wrong attempts get the same reply as those of other networks.
 * - An error of the check is not a failure.
 * - A success takes its own count back, and resets the account's failures from this network. It leaves those of other
 *   accounts.
 * - All processes count together in Redis; each counts in memory while Redis is unavailable.
 * - Keys contain the account's SHA-256 only: people type passwords into the wrong field.
 */
export function createLoginThrottle(update: UpdateFailures, backoff = loginBackoff) {
  return {
    /**
     * Runs `check`, which resolves with `ok: false` if the password was wrong. Throws 429 with Retry-After, without a
     * check, if the attempt has to wait, and what `check` throws.
     */
    async run<T extends { ok: boolean }>(
      { account, address, isKnown }: Attempt,
      check: () => Promise<T>,
    ): Promise<ThrottledOutcome<T>> {
      const network = networkOf(address);
      const pair = `${createHash('sha256').update(account).digest('base64url')}:${network}`;
      const known = { key: `known:${pair}`, limit: limits.known };
      const own = { key: `account:${pair}`, limit: limits.account };
      const shared = { key: `address:${network}`, limit: limits.network };

      let reservation = await reserve(update, [own, shared], backoff);
      const { waitMs } = reservation;
      if (waitMs > 0) {
        if (await isKnown(network)) reservation = await reserve(update, [known], backoff);
        if (reservation.waitMs > 0) throw tooMany(waitMs);
      }
      // A failure to take a count back is ignored, because counts expire.
      const undo = () => reservation.undo().catch(() => undefined);

      const outcome = await check().catch(async (error: unknown) => {
        await undo();
        throw error;
      });
      if (outcome.ok) {
        await undo();
        await reset(update, [own.key, known.key]).catch(() => undefined);
      }
      return { outcome, limited: !outcome.ok && waitMs > 0 ? tooMany(waitMs) : undefined };
    },
  };
}
