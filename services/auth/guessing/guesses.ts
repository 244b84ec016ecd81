import { createHash } from 'node:crypto';
import { HttpError } from '@content-platform/chassis';
import type { Backoff, FailureCounts } from './failure-counts.ts';
import { networkOf } from './network.ts';

export const guessBackoff: Backoff = { window: 15 * 60_000, shortest: 1_000, longest: 15 * 60_000 };

/** Failures before the waits begin: of an account from an address, of all accounts from one, and see `isKnown`. */
const limits = { account: 10, address: 200, known: 100 };

export interface Guess {
  /** Names the account in the same way however it was typed, and also one that is not there. */
  account: string;
  address: string;
  /** Whether the account has a session from this network (in CIDR form). Asked only when one has to wait. */
  isKnown(network: string): Promise<boolean>;
}

export interface Guessed<T> {
  /** what the check did; undefined: it was wrong */
  result: T | undefined;
  /** what a wrong one is to be answered with, for whom others would have had to wait */
  limited: HttpError<'rate_limited'> | undefined;
}

export type Guesses = ReturnType<typeof createGuesses>;

function tooMany(waitMs: number): HttpError<'rate_limited'> {
  const message = 'Too many failed attempts; Retry-After says when to come again.';
  const headers = { 'Retry-After': String(Math.ceil(waitMs / 1000)) };
  return new HttpError(429, 'rate_limited', message, undefined, { headers });
}

/**
 * Slows the guessing of passwords and client secrets down, and never locks an account: NIST SP 800-63B-4 §3.2.2, whose
 * growing waits and known addresses these are, and ASVS 5.0 6.1.1 and 6.3.1. Counts know accounts by their SHA-256:
 * people type passwords into the wrong field.
 */
export function createGuesses(counts: FailureCounts) {
  return {
    /**
     * Resolves with what `check` does: undefined when the password was wrong. Throws 429 with Retry-After when too many
     * were wrong before; then nothing was checked.
     *
     * A known address gets in all the same with the right password, or its neighbours could keep it out; with a wrong
     * one it learns no more than a stranger. For this it has a limit of its own, or the neighbours could guess without
     * end.
     */
    async guard<T>(
      { account, address, isKnown }: Guess,
      check: () => Promise<T | undefined>,
    ): Promise<Guessed<T>> {
      const network = networkOf(address);
      const pair = `${createHash('sha256').update(account).digest('base64url')}:${network}`;
      const known = { key: `known:${pair}`, limit: limits.known };
      const subjects = [
        { key: `account:${pair}`, limit: limits.account },
        { key: `address:${network}`, limit: limits.address },
      ];

      let reservation = await counts.reserve(subjects);
      const { waitMs } = reservation;
      if (waitMs > 0) {
        if (await isKnown(network)) reservation = await counts.reserve([known]);
        if (reservation.waitMs > 0) throw tooMany(waitMs);
      }
      const result = await check().catch(async (error: unknown) => {
        await reservation.giveBack();
        throw error;
      });
      if (result !== undefined) {
        await Promise.all([reservation.giveBack(), counts.forget([subjects[0]!.key, known.key])]);
      }
      return { result, limited: result === undefined && waitMs > 0 ? tooMany(waitMs) : undefined };
    },
  };
}
