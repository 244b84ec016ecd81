import { lookup as lookUp } from 'node:dns/promises';
import { once } from 'node:events';
import http from 'node:http';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { callbackify } from 'node:util';
import { singleFlight, withTimeout } from '@content-platform/chassis';
import type { Timeouts } from '../timeouts.ts';

export type Resolve = (hostname: string) => Promise<string[]>;

const lookupLimitMs = 1_000;

const resolveByDns: Resolve = async (hostname) =>
  (await lookUp(hostname, { all: true })).map(({ address }) => address);

/**
 * Resolves names; after a second the result is empty. Calls for the same hostname share one lookup, which
 * occupies one of libuv's four threads and cannot be cancelled.
 */
export function createResolve(resolve: Resolve = resolveByDns): Resolve {
  const share = singleFlight<string[]>();

  const lookUpOnce = async (hostname: string) =>
    (await share(hostname, undefined, () => resolve(hostname))).value;

  return async (hostname) =>
    isIP(hostname) ? [hostname] : withTimeout(lookUpOnce(hostname), lookupLimitMs, [] as string[]);
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

/** No connection to the service could be opened, so nothing of the request was sent. */
export class ConnectionFailed extends Error {}

/** Pause before the second attempt: a service that is being replaced may listen again by then. */
const pauseMs = 100;

/** Waits until `socket` is connected; destroys it after `limitMs`. */
async function connected(socket: Socket, limitMs: number): Promise<Socket> {
  // Kept after 'connect': an idle pooled socket has no other error handler.
  socket.on('error', () => undefined);
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(limitMs) });
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** Connects to `url`, with one repetition, which is safe because no request was sent. Rejects with ConnectionFailed. */
export async function connect(url: URL, timeouts: Timeouts, open: () => Socket): Promise<Socket> {
  const start = performance.now();
  try {
    return await connected(open(), timeouts.connect).catch(async () => {
      await sleep(pauseMs);
      return connected(open(), Math.max(1, Math.round(timeouts.connectTotal - (performance.now() - start))));
    });
  } catch (cause) {
    throw new ConnectionFailed(`${url.host} cannot be reached`, { cause });
  }
}

/**
 * Creates the agent for streamed uploads: one connection each, because the service may close a kept connection at any
 * time, and an upload cannot be repeated. `keepAlive` keeps Node from sending `Connection: close`, which would lose a
 * reply during the body.
 */
export function createUploadAgent(url: URL, timeouts: Timeouts, lookup: LookupFunction): http.Agent {
  const agent = new http.Agent({ keepAlive: true, lookup });
  // Node's constructor would take 0 for its default, 256.
  agent.maxFreeSockets = 0;
  const open = agent.createConnection.bind(agent);
  const connectTo = callbackify((target: http.ClientRequestArgs) =>
    connect(url, timeouts, () => open(target) as Socket),
  );
  agent.createConnection = (target, done) => {
    connectTo(target, done!);
    return undefined;
  };
  return agent;
}
