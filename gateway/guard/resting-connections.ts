import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The Retry-After of a refusal: the connection is not read for this time. */
const restMs = 1_000;
/** The rest of a connection whose client did not wait for Retry-After: shorter than clients wait for a reply. */
const earlyRestMs = 3_000;
const checkIntervalMs = 10;
/** Connections that are read again in one check. */
const maxPerCheck = 40;

/** Connections with a refused request. They are read again after their rest or, earlier, while `isCalm`. */
export function createRestingConnections(isCalm: () => boolean) {
  /** When each connection is read again, those that rest longest last. */
  const rests = [new Map<Socket, number>(), new Map<Socket, number>()];
  const [normal, long] = rests as [Map<Socket, number>, Map<Socket, number>];
  /** The connections that are read again in this turn of the event loop. */
  const woken = new Set<Socket>();
  /** The last request of each connection with a refusal. */
  const latest = new WeakMap<Socket, ServerResponse>();
  let timer: NodeJS.Timeout | undefined;

  function wake(): void {
    let left = maxPerCheck;
    const now = performance.now();
    for (const rest of rests) {
      for (const [socket, until] of rest) {
        if (left === 0 || (until > now && !isCalm())) break;
        left -= 1;
        rest.delete(socket);
        if (!socket.destroyed) woken.add(socket.resume());
      }
    }
    setImmediate(() => woken.clear());
    if (normal.size + long.size === 0) stop();
  }

  function stop(): void {
    clearInterval(timer);
    timer = undefined;
  }

  return {
    /**
     * Whether the request was sent during its connection's rest: its client has waited too long, so it is refused
     * sooner.
     */
    isEarly: (socket: Socket): boolean => woken.has(socket),

    /** Stops reading a connection once the reply of a refused request is sent. */
    add(socket: Socket, response: ServerResponse): void {
      latest.set(socket, response);
      const rest = woken.has(socket) ? long : normal;
      // Not earlier: Node reads on when a reply is finished.
      response.once('close', () => {
        if (socket.destroyed || socket.writableEnded || latest.get(socket) !== response) return;
        socket.pause();
        rest.set(socket, performance.now() + (rest === long ? earlyRestMs : restMs));
        timer ??= setInterval(wake, checkIntervalMs).unref();
      });
    },

    /** Reads no connection again. */
    stop,
  };
}
