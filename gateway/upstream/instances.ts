import type { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Timeouts } from '../timeouts.ts';
import { createUploadAgent } from './connect.ts';
import { createConnectionPool, type ConnectionPool } from './connection-pool.ts';
import { probe, type Readiness } from './probe.ts';
import { toLookup, type Resolve } from './resolve.ts';

/** Interval of resolving the name and of probing each instance. */
const probeIntervalMs = 1_000;
/** One missed probe may be a busy moment; after two, within 5 s, the instance gets no more requests. */
const maxMissedProbes = 2;

/** One process of a service. */
export interface Instance {
  readonly address: string;
  readonly pool: ConnectionPool;
  /** Opens connections for streamed uploads. */
  readonly agent: Agent;
  /** Requests of this gateway that are at the instance. */
  inFlight: number;
}

/** The instances behind a service's name. */
export interface Instances {
  /** Returns the ready instance with the fewest requests in flight. If no instance is ready, fails open: any instance. */
  choose(): Instance;
  /** Returns another ready instance, or undefined. */
  choose(instead: Instance): Instance | undefined;
  /** Takes an instance out until its next probe reports that it is ready. */
  markUnreachable(instance: Instance): void;
  /** Tells whether at least one instance is ready. */
  isUp(): Promise<boolean>;
  stop(): void;
}

interface Known extends Instance {
  isReady: boolean;
  missedProbes: number;
}

/**
 * Follows the instances behind `url` until it is stopped. `resolve` must have a time limit: requests and /health wait for
 * it.
 */
export function createInstances(url: URL, timeouts: Timeouts, maxIdle: number, resolve: Resolve): Instances {
  const lookup = toLookup(resolve);
  const hostname = url.hostname.replace(/^\[|\]$/g, '');
  const known = new Map<string, Known>();
  const stopping = new AbortController();
  let turn = 0;

  /** Adds an instance that is not ready: it has an address before it listens. */
  function add(address: string): void {
    const agent = createUploadAgent(url, timeouts, lookup);
    const pool = createConnectionPool(url, address, timeouts, maxIdle, lookup);
    known.set(address, { address, pool, agent, inFlight: 0, isReady: false, missedProbes: 0 });
  }

  /** Closes the idle connections now, and the others after their requests. */
  function closeConnections({ pool }: Known): void {
    pool.maxIdle = 0;
    pool.closeIdle();
  }

  async function resolveAgain(): Promise<void> {
    // If the lookup fails, the known addresses stay.
    const addresses = await resolve(hostname).catch((): string[] => []);
    if (addresses.length === 0) return;
    for (const address of addresses) if (!known.has(address)) add(address);
    for (const [address, each] of known) {
      if (addresses.includes(address)) continue;
      known.delete(address);
      closeConnections(each);
    }
  }

  function update(instance: Known, readiness: Readiness): void {
    const wasReady = instance.isReady;
    const isSilent = readiness === 'silent';
    instance.missedProbes = isSilent ? instance.missedProbes + 1 : 0;
    instance.isReady =
      readiness === 'ready' || (isSilent && wasReady && instance.missedProbes < maxMissedProbes);
    if (instance.isReady) instance.pool.maxIdle = maxIdle;
    else if (wasReady && ready().length > 0) closeConnections(instance);
  }

  async function probeAll(): Promise<void> {
    await Promise.all(
      [...known.values()].map(async (each) => update(each, await probe(url, each.address, lookup))),
    );
  }

  async function repeat(work: () => Promise<void>): Promise<void> {
    const { signal } = stopping;
    while (!signal.aborted) {
      await work();
      await sleep(probeIntervalMs, undefined, { ref: false, signal }).catch(() => undefined);
    }
  }

  const ready = () => [...known.values()].filter(({ isReady }) => isReady);

  /** Takes turns between instances with the same number of requests. */
  function leastBusy(some: Known[]): Known | undefined {
    turn += 1;
    const first = some[turn % some.length];
    return some.reduce((least, each) => (each.inFlight < least!.inFlight ? each : least), first);
  }

  function choose(): Instance;
  function choose(instead: Instance): Instance | undefined;
  function choose(instead?: Instance): Instance | undefined {
    const chosen = leastBusy(ready().filter((each) => each !== instead));
    return chosen ?? (instead ? undefined : leastBusy([...known.values()]));
  }

  // Until the name is resolved for the first time, connecting resolves it.
  add(hostname);
  const firstProbe = resolveAgain().then(probeAll);
  void firstProbe.then(() => Promise.all([repeat(resolveAgain), repeat(probeAll)]));

  return {
    choose,
    markUnreachable(instance) {
      Object.assign(instance, { isReady: false });
    },
    async isUp() {
      await firstProbe;
      return ready().length > 0;
    },
    stop() {
      stopping.abort();
      for (const each of known.values()) closeConnections(each);
    },
  };
}
