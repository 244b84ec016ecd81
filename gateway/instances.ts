import { lookup } from 'node:dns/promises';
import type { Agent } from 'node:http';
import { isIP } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createConnections, type Connections } from './connections.ts';
import { probe, type Readiness } from './probe.ts';
import type { Timeouts } from './timeouts.ts';
import { createUpstreamAgent } from './upstream-agent.ts';

/** Names are resolved, and instances asked for their readiness, so often. */
const lookEveryMs = 1_000;
/** One silence may be a busy moment; a dead one is left out after two, which is within 5 s. */
const silences = 2;

/** One process of a service. */
export interface Instance {
  readonly address: string;
  readonly connections: Connections;
  /** Makes connections for what goes on as it comes. */
  readonly agent: Agent;
  /** Requests of ours that are there. */
  underWay: number;
}

/** The processes that a service's name stands for. */
export interface Instances {
  /**
   * The one with the fewest requests under way, among those that are ready. When none is, it may be us who cannot see
   * it: then any.
   */
  choose(): Instance;
  /** Another one that is ready; undefined: there is none. */
  choose(instead: Instance): Instance | undefined;
  /** Nobody could connect to it: it is left out until it says that it is ready. */
  cannotConnect(instance: Instance): void;
  /** Whether at least one is ready. */
  isUp(): Promise<boolean>;
  stop(): void;
}

interface Known extends Instance {
  isReady: boolean;
  silent: number;
}

/** What a name stands for; addresses stand for themselves. */
export type Resolve = (hostname: string) => Promise<string[]>;

const resolveByDns: Resolve = async (hostname) => {
  if (isIP(hostname)) return [hostname];
  return (await lookup(hostname, { all: true })).map(({ address }) => address);
};

/** Follows who stands behind `url`, until it is stopped. */
export function createInstances(
  url: URL,
  timeouts: Timeouts,
  maxIdle: number,
  resolve = resolveByDns,
): Instances {
  const hostname = url.hostname.replace(/^\[|\]$/g, '');
  const known = new Map<string, Known>();
  const stopping = new AbortController();
  let turn = 0;

  function add(address: string): void {
    const agent = createUpstreamAgent(url, timeouts);
    const connections = createConnections(url, address, timeouts, maxIdle);
    // It has an address before it listens.
    known.set(address, { address, connections, agent, underWay: 0, isReady: false, silent: 0 });
  }

  /** None of its connections is kept, also of those that are in use; requests that are under way are answered. */
  function leaveOut({ connections }: Known): void {
    connections.maxIdle = 0;
    connections.closeIdle();
  }

  async function resolveAgain(): Promise<void> {
    // When nobody can say who is there, they are still the same.
    const addresses = await resolve(hostname).catch((): string[] => []);
    if (addresses.length === 0) return;
    for (const address of addresses) if (!known.has(address)) add(address);
    for (const [address, each] of known) {
      if (addresses.includes(address)) continue;
      known.delete(address);
      leaveOut(each);
    }
  }

  function note(instance: Known, readiness: Readiness): void {
    instance.silent = readiness === 'silent' ? instance.silent + 1 : 0;
    const wasReady = instance.isReady;
    instance.isReady =
      readiness === 'ready' || (readiness === 'silent' && wasReady && instance.silent < silences);
    if (instance.isReady) instance.connections.maxIdle = maxIdle;
    else if (wasReady && ready().length > 0) leaveOut(instance);
  }

  async function probeAll(): Promise<void> {
    await Promise.all([...known.values()].map(async (each) => note(each, await probe(url, each.address))));
  }

  async function repeat(work: () => Promise<void>): Promise<void> {
    const { signal } = stopping;
    while (!signal.aborted) {
      await work();
      await sleep(lookEveryMs, undefined, { ref: false, signal }).catch(() => undefined);
    }
  }

  const ready = () => [...known.values()].filter(({ isReady }) => isReady);

  /** In turns, where several have the same number under way. */
  function leastBusy(some: Known[]): Known | undefined {
    turn += 1;
    const first = some[turn % some.length];
    return some.reduce((least, each) => (each.underWay < least!.underWay ? each : least), first);
  }

  function choose(): Instance;
  function choose(instead: Instance): Instance | undefined;
  function choose(instead?: Instance): Instance | undefined {
    const chosen = leastBusy(ready().filter((each) => each !== instead));
    return chosen ?? (instead ? undefined : leastBusy([...known.values()]));
  }

  // Until the name was resolved for the first time, connecting resolves it.
  add(hostname);
  const looked = resolveAgain().then(probeAll);
  void looked.then(() => Promise.all([repeat(resolveAgain), repeat(probeAll)]));

  return {
    choose,
    cannotConnect(instance) {
      Object.assign(instance, { isReady: false });
    },
    async isUp() {
      await looked;
      return ready().length > 0;
    },
    stop() {
      stopping.abort();
      for (const each of known.values()) leaveOut(each);
    },
  };
}
