import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Starts a proxy before the server at `to`. It simulates faults (unavailable, slow, hanging, wrong replies) or
 * redirects to another server. `port` 0: any free port.
 */
export async function startProxy(to: URL, port = 0) {
  const sockets = new Set<Socket>();
  let target = to;
  let serve: (client: Socket) => void = pass;
  let width = Infinity;
  let late = 0;
  let held: PromiseWithResolvers<void> | undefined;

  /** Forwards data in order: each chunk has the same delay, and nothing passes while held. */
  function forward(from: Socket, to: Socket, isReply: boolean): void {
    let last = Promise.resolve();
    async function passOn(bytes: Buffer, due: number): Promise<void> {
      if (due > performance.now()) await sleep(due - performance.now());
      // The width may change during the pause: no byte may be lost.
      for (let sent = 0; sent < bytes.length && !to.destroyed;) {
        await held?.promise;
        const piece = bytes.subarray(sent, isReply ? sent + width : bytes.length);
        to.write(piece);
        sent += piece.length;
        if (sent < bytes.length) await sleep(10);
      }
    }
    from.on('data', (bytes: Buffer) => {
      const due = performance.now() + (isReply ? late : 0);
      last = last.then(() => passOn(bytes, due));
    });
    // While held, the end of the stream also waits.
    from.on('end', () => void last.then(() => held?.promise).then(() => to.end()));
  }

  function keep(socket: Socket, other?: Socket): void {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      sockets.delete(socket);
      void (async () => {
        await held?.promise;
        other?.destroy();
      })();
    });
  }

  function pass(client: Socket): void {
    const upstream = connect(Number(target.port), target.hostname);
    keep(client, upstream);
    keep(upstream, client);
    forward(client, upstream, false);
    forward(upstream, client, true);
  }

  const endAll = (end: (socket: Socket) => void = (socket) => socket.destroy()) => sockets.forEach(end);
  /** Closes the existing connections; `next` handles new ones. */
  function become(next: (client: Socket) => void, end?: (socket: Socket) => void): void {
    serve = next;
    endAll(end);
  }

  const server = createServer((client) => serve(client));
  async function listen(at: number): Promise<void> {
    server.listen(at, '127.0.0.1');
    await once(server, 'listening');
  }
  async function refuseConnections(): Promise<void> {
    const closed = once(server, 'close');
    server.close();
    endAll();
    await closed;
  }
  await listen(port);
  const url = new URL(to);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: url.href,
    /** Closes every connection, including each new one at once. */
    cut: () => become((client) => client.destroy()),
    /** Closes every connection and the listener; new connections are refused. */
    refuseConnections,
    /** Resets every connection, and each new one at its first bytes. */
    reset: () =>
      become(
        (client) => {
          keep(client);
          client.once('data', () => client.resetAndDestroy());
        },
        (socket) => socket.resetAndDestroy(),
      ),
    /** Keeps connections open and accepts new ones, but forwards nothing either way, like a stopped process. */
    hold: () => void (held ??= Promise.withResolvers()),
    /** The existing connections carry nothing any more, as if their server was gone. New ones do. */
    blackhole: () => endAll((socket) => socket.removeAllListeners('data').resume()),
    /** Delays replies by this many milliseconds. */
    delay: (ms: number) => void (late = ms),
    /** Forwards at most this many reply bytes every 10 ms. 0: none. Infinity: no limit. */
    limitReplies: (bytes: number) => void (width = bytes),
    /** Closes every connection; `handler` serves new ones instead of the target. */
    replace: (handler: (client: Socket) => void) =>
      become((client) => {
        keep(client);
        handler(client);
      }),
    /** Sends new connections to that server. */
    redirect: (other: URL) => void (target = other),
    async repair(): Promise<void> {
      // Connections to a substitute server must not continue after the fault.
      if (serve !== pass) become(pass);
      [width, late] = [Infinity, 0];
      held?.resolve();
      held = undefined;
      if (!server.listening) await listen(Number(new URL(url).port));
    },
    async close(): Promise<void> {
      held?.resolve();
      if (server.listening) await refuseConnections();
    },
  };
}
export type Proxy = Awaited<ReturnType<typeof startProxy>>;
