import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { callbackify } from 'node:util';

/** Resolves a hostname to its IP addresses. */
export type Resolve = (hostname: string) => Promise<string[]>;

const limitMs = 1_000;

const resolveByDns: Resolve = async (hostname) =>
  (await lookup(hostname, { all: true })).map(({ address }) => address);

/**
 * Gives resolutions a time limit, after which they reject. A lookup cannot be cancelled and holds one of the four threads
 * of libuv's pool, so calls for the same hostname share one pending lookup. An IP address resolves to itself.
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

  return async (hostname) => {
    if (isIP(hostname)) return [hostname];
    const done = new AbortController();
    const limit = sleep(limitMs, undefined, { signal: done.signal }).then(() => {
      throw new Error(`${hostname} was not resolved within ${limitMs} ms`);
    });
    try {
      return await Promise.race([lookUpOnce(hostname), limit]);
    } finally {
      done.abort();
    }
  };
}

/** Turns `resolve` into the `lookup` option of a connection. */
export function toLookup(resolve: Resolve): LookupFunction {
  const find = callbackify(async (hostname: string): Promise<[LookupAddress, ...LookupAddress[]]> => {
    const [first, ...more] = await resolve(hostname);
    if (first === undefined) throw new Error(`${hostname} has no address`);
    const withFamily = (address: string): LookupAddress => ({ address, family: isIP(address) });
    return [withFamily(first), ...more.map(withFamily)];
  });
  return (hostname, { all }, done) =>
    find(hostname, (error, found) => {
      if (error) done(error, []);
      else if (all) done(null, found);
      else done(null, found[0].address, found[0].family);
    });
}
