import { isIP, SocketAddress } from 'node:net';
import { createHash } from 'node:crypto';
import { HttpError } from '@content-platform/chassis';
import { type Backoff, reserveAttempt, resetFailures, type UpdateFailures } from './failures.ts';

type Prefix = 48 | 64;

/**
 * Returns the network (CIDR) for which guesses are counted: a host can choose any address of its IPv6 /64, a site any
 * network of its /48. IPv4 addresses, also written as IPv6, count on their own.
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
  /** Failures of an account from a known network (`Attempt.isKnown`). */
  known: 100,
};

/** In ms, for passwords. Strangers can cause this wait, so it must not block the owner for long. */
const longestAllNetworksMs = 60_000;

interface Attempt {
  /** Identifies the account regardless of how its name was typed, even if it does not exist. */
  account: string;
  address: string;
  /** Returns whether the account has a live session or recent token from this network (CIDR). Called during a wait. */
  isKnown(network: string): Promise<boolean>;
  /** For codes: time in ms for which a failure counts in the limits of all networks together and of a known network. */
  windowMs?: number;
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
 * - An attempt is counted as a failure before its check, so that simultaneous attempts cannot exceed a limit. An error
 *   of the check is not a failure.
 * - From the limit on, each failure starts a wait, which doubles from 1 s to 15 min. During a wait nothing is checked.
 * - Failures expire 15 min after the first one or the last wait. A success resets those of the account in its network.
 * - A known network may try during a wait, so that others in the network cannot lock the owner out. It has its own
 *   limit, and its wrong attempts get the same reply.
 * - Failures from all networks together make unknown networks wait for at most a minute, with `windowMs` for 15 min.
 * - All processes count together in Redis; while Redis is unavailable, each process counts in memory.
 * - Keys contain only the SHA-256 of the account, because people type passwords into the wrong field.
 */
export function createLoginThrottle(update: UpdateFailures, backoff = loginBackoff) {
  return {
    /**
     * `check` resolves with `ok: false` for a wrong password. Throws 429 if the attempt has to wait. `limited` is the
     * error for a wrong attempt from a known network, if other networks would have to wait.
     */
    async run<T extends { ok: boolean }>(
      { account, address, isKnown, windowMs }: Attempt,
      check: () => Promise<T>,
    ) {
      const network = networkOf(address);
      const site = networkOf(address, 48);
      const hash = createHash('sha256').update(account).digest('base64url');
      const knownNetwork = { key: `known:${hash}:${network}`, limit: limits.known, windowMs };
      const accountInNetwork = { key: `account:${hash}:${network}`, limit: limits.account.network };
      const otherKeys = [
        { key: `address:${network}`, limit: limits.all.network },
        {
          key: `everywhere:${hash}`,
          limit: limits.account.allNetworks,
          longestMs: windowMs ? backoff.longestMs : longestAllNetworksMs,
          windowMs,
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
        if (await isKnown(network)) reservation = await reserveAttempt(update, [knownNetwork], backoff);
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
        await resetFailures(update, [accountInNetwork.key, knownNetwork.key]).catch(() => undefined);
      }
      return { outcome, limited: !outcome.ok && waitMs > 0 ? tooMany(waitMs) : undefined };
    },
  };
}
