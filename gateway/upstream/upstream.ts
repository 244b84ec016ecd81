import http from 'node:http';
import type { LookupFunction } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSemaphore, type Release } from '@content-platform/chassis';
import { internalPortOffset } from '@content-platform/contract';
import { onFinished, type GatewayResponse, type Step } from '../request-context.ts';
import type { Timeouts } from '../timeouts.ts';
import { startAttempt, type Service } from './attempt.ts';
import { type Instance, isClosedByPeer, upstreamErrors } from './transport.ts';
import { createConnectionPool } from './forward-buffered.ts';
import { createForwardStream } from './forward-stream.ts';
import { createRequestHeaders } from './proxy-headers.ts';
import { createUploadAgent, toLookup, type Resolve } from './connect.ts';

const probeLimitMs = 1_000;
/** One missed probe may be a short overload. After two, within 5 s, the instance gets no more requests. */
const maxMissedProbes = 2;

/** The readiness that an instance reports; 'silent' if no valid reply came within a second. */
type Readiness = 'ready' | 'unready' | 'silent';

/** Requests the readiness of an instance of the service at `url`, at its internal listener. */
function probe(url: URL, instance: Instance, lookup: LookupFunction): Promise<Readiness> {
  const { address, probeAgent: agent } = instance;
  const { promise, resolve } = Promise.withResolvers<Readiness>();
  const request = http.get({
    host: address,
    port: Number(url.port || 80) + internalPortOffset,
    path: '/health/ready',
    headers: { Host: url.host },
    agent,
    lookup,
    signal: AbortSignal.timeout(probeLimitMs),
  });
  request.once('response', (response) => {
    const isReady = response.statusCode === 200;
    resolve(isReady ? 'ready' : 'unready');
    if (isReady) response.resume();
    else response.destroy();
  });
  // The instance may have closed the connection since the last probe.
  request.on('error', (error) =>
    resolve(request.reusedSocket && isClosedByPeer(error) ? probe(url, instance, lookup) : 'silent'),
  );
  // The only event after an unexpected 101.
  request.once('close', () => resolve('silent'));
  return promise;
}

/** Tracks the instances behind `url` until stop(). `resolve` must have a time limit: requests and /health wait for it. */
export function createInstances(url: URL, timeouts: Timeouts, maxIdle: number, resolve: Resolve) {
  const lookup = toLookup(resolve);
  const hostname = url.hostname.replace(/^\[|\]$/g, '');
  const known = new Map<string, Instance>();
  const stopping = new AbortController();
  let turn = 0;

  const ready = () => [...known.values()].filter(({ isReady }) => isReady);

  /** Adds an instance as not ready: DNS lists an address before its process listens. */
  function add(address: string): void {
    const agent = createUploadAgent(url, timeouts, lookup);
    const pool = createConnectionPool(url, address, timeouts, maxIdle, lookup);
    const probeAgent = new http.Agent({ keepAlive: true });
    known.set(address, { address, pool, agent, probeAgent, inFlight: 0, isReady: false, missedProbes: 0 });
  }

  /** Closes the idle connections now, and the others after their requests. */
  function closeConnections({ pool, probeAgent }: Instance): void {
    pool.maxIdle = 0;
    pool.closeIdle();
    probeAgent.destroy();
  }

  /** Resolves the name, adds new instances and removes those that are no longer listed. */
  async function refreshInstances(): Promise<void> {
    const addresses = await resolve(hostname).catch((): string[] => []);
    // If the lookup fails, the known addresses stay.
    if (addresses.length === 0) return;
    for (const address of addresses) if (!known.has(address)) add(address);
    for (const [address, each] of known) {
      if (addresses.includes(address)) continue;
      known.delete(address);
      closeConnections(each);
    }
  }

  function update(instance: Instance, readiness: Readiness): void {
    const wasReady = instance.isReady;
    const isSilent = readiness === 'silent';
    instance.missedProbes = isSilent ? instance.missedProbes + 1 : 0;
    instance.isReady =
      readiness === 'ready' || (isSilent && wasReady && instance.missedProbes < maxMissedProbes);
    if (instance.isReady) instance.pool.maxIdle = maxIdle;
    else if (wasReady && ready().length > 0) closeConnections(instance);
  }

  async function probeAll(): Promise<void> {
    await Promise.all([...known.values()].map(async (each) => update(each, await probe(url, each, lookup))));
  }

  async function repeat(work: () => Promise<void>): Promise<void> {
    const { signal } = stopping;
    while (!signal.aborted) {
      await work();
      await sleep(timeouts.probeInterval, undefined, { ref: false, signal }).catch(() => undefined);
    }
  }

  /** Alternates between instances with the same number of requests. */
  function leastBusy(some: Instance[]): Instance | undefined {
    turn += 1;
    const first = some[turn % some.length];
    return some.reduce((least, each) => (each.inFlight < least!.inFlight ? each : least), first);
  }

  // Until the first resolution, opening a connection resolves the name.
  add(hostname);
  const firstProbe = refreshInstances().then(probeAll);
  void firstProbe.then(() => Promise.all([repeat(refreshInstances), repeat(probeAll)]));

  return {
    /** Returns the ready instance with the fewest requests in flight; if none is ready, fails open: any instance. */
    choose: () => leastBusy(ready()) ?? leastBusy([...known.values()])!,
    chooseOther: (instance: Instance) => leastBusy(ready().filter((each) => each !== instance)),
    async isUp(): Promise<boolean> {
      await firstProbe;
      return ready().length > 0;
    },
    stop() {
      stopping.abort();
      for (const each of known.values()) closeConnections(each);
    },
  };
}

interface UpstreamOptions extends Pick<Service, 'logger' | 'metrics' | 'refuse'> {
  publicUrl: string;
  timeouts: Timeouts;
  /** Maximum number of concurrent requests to one service, each on its own connection. The same number may wait. */
  maxRequests: number;
  resolve: Resolve;
}

export type Upstream = ReturnType<typeof createUpstream>;

/** Creates the client of the service `name` at `url`. */
export function createUpstream(
  name: string,
  url: URL,
  { publicUrl, timeouts, maxRequests, resolve, ...options }: UpstreamOptions,
) {
  const instances = createInstances(url, timeouts, maxRequests, resolve);
  const service: Service = {
    ...options,
    name,
    instances,
    requestHeaders: createRequestHeaders(url.host, publicUrl),
    forwardStream: createForwardStream(url, timeouts.drain),
    responseMs: timeouts.response,
  };
  const slots = createSemaphore(maxRequests, maxRequests);

  /** Waits for a slot; throws 503 after `timeouts.response`. Resolves with undefined if the client disconnects. */
  async function waitForSlot(response: GatewayResponse): Promise<Release | undefined> {
    const waiting = new AbortController();
    const stop = () => waiting.abort(new Error(`${maxRequests} requests to ${name} are in progress`));
    const timer = setTimeout(stop, timeouts.response);
    const cancel = onFinished(response, stop);
    try {
      return await slots.acquire(waiting.signal);
    } catch (error) {
      if (response.destroyed) return undefined;
      options.metrics.upstreamErrors.inc({ service: name, reason: 'busy' });
      throw upstreamErrors.busy(error);
    } finally {
      clearTimeout(timer);
      cancel();
    }
  }

  function start(response: GatewayResponse, release: Release): void {
    const { bodyStream } = response.locals;
    if (!bodyStream?.errored) return startAttempt(service, response, release);
    release();
    throw bodyStream.errored;
  }

  /** Sends the request to the service. Throws 503 if too many requests wait. */
  const forward: Step = (_request, response) => {
    // The client disconnected during an earlier step, and its 'close' event has passed; or it has got a 408.
    if (response.destroyed || response.headersSent) return;
    const release = slots.tryAcquire();
    if (release) return start(response, release);
    // The slot may have come from another request of this connection, which ended because the client disconnected.
    return waitForSlot(response).then(
      (waited) => waited && (response.destroyed ? waited() : start(response, waited)),
    );
  };

  return { forward, isUp: instances.isUp, stop: instances.stop };
}
