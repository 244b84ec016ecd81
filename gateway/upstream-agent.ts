import http from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { callbackify } from 'node:util';
import type { Timeouts } from './timeouts.ts';

/** No connection to the service could be opened: it has seen nothing of the request. */
export class NotConnected extends Error {}

/** A service that is just being replaced may listen again by then. */
const pauseMs = 100;
/** Shorter than the 5 s after which a Node server closes an idle connection: we are always the one that closes. */
const idleMs = 4_000;

/** Waits until `socket` is connected; destroys it after `ms`. */
function connected(socket: Socket, event: string, ms: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => socket.destroy(new Error(`not connected after ${ms} ms`)), ms);
    socket.once(event, () => {
      clearTimeout(timer);
      resolve(socket);
    });
    // It stays: between two requests of a kept connection nobody else listens.
    socket.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
  });
}

/**
 * A pool of kept connections to one service. Opening one has a time limit and is tried twice; since that happens before
 * a request has its connection, the second attempt suits any method. Fails with NotConnected.
 */
export function createUpstreamAgent(url: URL, timeouts: Timeouts, maxFreeSockets: number): http.Agent {
  const isTls = url.protocol === 'https:';
  const options = { keepAlive: true, timeout: idleMs, maxFreeSockets };
  const agent = isTls ? new https.Agent(options) : new http.Agent(options);
  const open = agent.createConnection.bind(agent);

  async function connect(target: http.ClientRequestArgs): Promise<Socket> {
    const start = performance.now();
    const attempt = (ms: number) =>
      connected(open(target) as Socket, isTls ? 'secureConnect' : 'connect', ms);
    try {
      return await attempt(timeouts.connect).catch(async () => {
        await sleep(pauseMs);
        return attempt(Math.max(1, timeouts.connectTotal - (performance.now() - start)));
      });
    } catch (cause) {
      throw new NotConnected(`${url.host} cannot be reached`, { cause });
    }
  }

  const connectWithCallback = callbackify(connect);
  agent.createConnection = (target, done) => {
    connectWithCallback(target, done!);
    return undefined;
  };
  return agent;
}

/** Closes the connections that nobody uses: when one of them was found dead, the others are not to be trusted. */
export function closeIdle(agent: http.Agent): void {
  for (const sockets of Object.values(agent.freeSockets)) sockets?.forEach((socket) => socket.destroy());
}
