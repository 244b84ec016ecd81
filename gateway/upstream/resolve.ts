import { lookup } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { callbackify } from 'node:util';
import { withTimeout } from '@content-platform/chassis';

/** Resolves a hostname to its IP addresses. */
export type Resolve = (hostname: string) => Promise<string[]>;

const limitMs = 1_000;

const resolveByDns: Resolve = async (hostname) =>
  (await lookup(hostname, { all: true })).map(({ address }) => address);

/**
 * Limits the time of resolutions; then the result is empty. Calls for the same hostname share one lookup, which
 * occupies a thread of libuv's four and cannot be cancelled.
 */
export function createResolve(resolve: Resolve = resolveByDns): Resolve {
  const pending = new Map<string, Promise<string[]>>();

  function lookUpOnce(hostname: string): Promise<string[]> {
    const known = pending.get(hostname);
    if (known) return known;
    const begun = resolve(hostname).finally(() => pending.delete(hostname));
    pending.set(hostname, begun);
    return begun;
  }

  return async (hostname) =>
    isIP(hostname) ? [hostname] : withTimeout(lookUpOnce(hostname), limitMs, [] as string[]);
}

/** Turns `resolve` into the `lookup` option of a connection. */
export function toLookup(resolve: Resolve): LookupFunction {
  const find = callbackify(async (hostname: string) => {
    const addresses = await resolve(hostname);
    if (addresses.length === 0) throw new Error(`${hostname} could not be resolved`);
    return addresses.map((address) => ({ address, family: isIP(address) }));
  });
  // Node requests all addresses and connects to the first that works.
  return (hostname, _options, done) => find(hostname, (error, found) => done(error, found ?? []));
}
