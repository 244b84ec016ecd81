import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Timeouts } from './timeouts.ts';

/** No connection to the service could be opened: it has seen nothing of the request. */
export class NotConnected extends Error {}

/** A service that is just being replaced may listen again by then. */
const pauseMs = 100;

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
 * A connection to `url`, which `open` begins. That has a time limit and is tried twice; since it happens before a request
 * has its connection, the second attempt suits any method. Rejects with NotConnected.
 */
export async function connect(url: URL, timeouts: Timeouts, open: () => Socket): Promise<Socket> {
  const start = performance.now();
  const event = url.protocol === 'https:' ? 'secureConnect' : 'connect';
  const attempt = (ms: number) => connected(open(), event, ms);
  try {
    return await attempt(timeouts.connect).catch(async () => {
      await sleep(pauseMs);
      return attempt(Math.max(1, timeouts.connectTotal - (performance.now() - start)));
    });
  } catch (cause) {
    throw new NotConnected(`${url.host} cannot be reached`, { cause });
  }
}
