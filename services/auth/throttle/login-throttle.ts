import { isIP, SocketAddress } from 'node:net';
import { createHash } from 'node:crypto';
import { HttpError } from '@content-platform/chassis';
import { type Backoff, reserveAttempt, resetFailures, type UpdateFailures } from './failures.ts';

/** A host can choose any address of its /64, and a site any network of its /48. */
type Prefix = 48 | 64;

/**
 * Returns the network in CIDR form for which guesses from an IP address are counted. For IPv4, also written as IPv6,
 * this is the single address. For IPv6 it is the network of this prefix length.
 */
export function networkOf(address: string, prefix: Prefix = 64): string {
  if (isIP(address) !== 6) return address;
  const canonical = new SocketAddress({ address: address.replace(/%.*/, ''), family: 'ipv6' }).address;
  const mapped = /^::ffff:([\d.]+)$/.exec(canonical)?.[1];
  if (mapped) return mapped;
  const [left = [], right = []] = canonical.split('::').map((part) => part.split(':').filter(Boolean));
  const zeros = Array<string>(8 - left.length - right.length).fill('0');
  return `${[...left, ...zeros, ...right].slice(0, prefix / 16).join(':')}::/${prefix}`;
}

export const loginBackoff: Backoff = { windowMs: 15 * 60_000, shortestMs: 1_000, longestMs: 15 * 60_000 };

/** Failures before waits begin. A site is an IPv6 /48. */
const limits = {
  /** Failures of an account from one network, from one site, and from all networks together. */
  account: { network: 10, site: 30, allNetworks: 100 },
  /** Failures of all accounts from one network, and from one site. */
  all: { network: 200, site: 600 },
  /** Failures of an account from a network that has a session of it. */
  known: 100,
};

/**
 * Longest wait after failures from all networks, in ms. Strangers can cause this wait, so it must not block the owner
 * for long.
 */
const longestAllNetworksMs = 60_000;

interface Attempt {
  /** Identifies the account regardless of how its name was typed, even if it does not exist. */
  account: string;
  address: string;
  /**
   * Returns whether the account has a session from this network (in CIDR form). Called only if the attempt has to wait.
   */
  isKnown(network: string): Promise<boolean>;
}

interface ThrottledOutcome<T> {
  outcome: T;
  /** The error to return for a wrong attempt from a known network, if other networks would have to wait. */
  limited: HttpError<'rate_limited'> | undefined;
}

export type LoginThrottle = ReturnType<typeof createLoginThrottle>;

function tooMany(waitMs: number): HttpError<'rate_limited'> {
  const message = 'Too many failed attempts. Wait for the number of seconds in Retry-After.';
  const headers = { 'Retry-After': String(Math.ceil(waitMs / 1000)) };
  return new HttpError('rate_limited', message, { headers });
}

/**
 * Slows down guessing of passwords and client secrets without locking accounts: NIST SP 800-63B-4 §3.2.2, and ASVS 5.0
 * 6.1.1 and 6.3.1. It guarantees:
 *
 * - An attempt is counted as a failure before its check starts, so that simultaneous attempts cannot exceed a limit.
 * - From the limit on, each failure starts a wait, which doubles from 1 s to 15 min.
 * - During a wait no attempt is checked or counted.
 * - Failures expire 15 min after the first one, or after the last wait once the limit was reached.
 * - A known network may try during a wait; otherwise other hosts in the network could lock the account's owner out. It
 *   has its own limit, which stops endless guessing from that network. Its wrong attempts get the same reply as those
 *   from other networks.
 * - An error of the check is not a failure.
 * - A success removes its own count and resets the account's failures from this network. Failures of other accounts
 *   stay.
 * - All processes count together in Redis; while Redis is unavailable, each process counts in memory.
 * - Failures of an account from all networks together make unknown networks wait, at most a minute at a time, because
 *   an attacker can have many networks. Known networks do not wait for these failures.
 * - Keys contain only the SHA-256 of the account, because people type passwords into the wrong field.
 */
export function createLoginThrottle(update: UpdateFailures, backoff = loginBackoff) {
  return {
    /**
     * Runs `check`, which resolves with `ok: false` if the password was wrong. If the attempt has to wait, throws 429
     * with Retry-After and does not check. Throws the errors of `check`.
     */
    async run<T extends { ok: boolean }>(
      { account, address, isKnown }: Attempt,
      check: () => Promise<T>,
    ): Promise<ThrottledOutcome<T>> {
      const network = networkOf(address);
      const site = networkOf(address, 48);
      const hash = createHash('sha256').update(account).digest('base64url');
      const known = { key: `known:${hash}:${network}`, limit: limits.known };
      const accountInNetwork = { key: `account:${hash}:${network}`, limit: limits.account.network };
      const otherKeys = [
        { key: `address:${network}`, limit: limits.all.network },
        {
          key: `everywhere:${hash}`,
          limit: limits.account.allNetworks,
          longestMs: longestAllNetworksMs,
        },
        ...(site === network
          ? []
          : [
              { key: `account:${hash}:${site}`, limit: limits.account.site },
              { key: `address:${site}`, limit: limits.all.site },
            ]),
      ];

      let reservation = await reserveAttempt(update, [accountInNetwork, ...otherKeys], backoff);
      const { waitMs } = reservation;
      if (waitMs > 0) {
        if (await isKnown(network)) reservation = await reserveAttempt(update, [known], backoff);
        if (reservation.waitMs > 0) throw tooMany(waitMs);
      }
      // An error of the removal is ignored, because counts expire.
      const undo = () => reservation.undo().catch(() => undefined);

      const outcome = await check().catch(async (error: unknown) => {
        await undo();
        throw error;
      });
      if (outcome.ok) {
        await undo();
        await resetFailures(update, [accountInNetwork.key, known.key]).catch(() => undefined);
      }
      return { outcome, limited: !outcome.ok && waitMs > 0 ? tooMany(waitMs) : undefined };
    },
  };
}
