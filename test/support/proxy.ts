import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** A way to a server on which it can be made to look away, slow, hanging or mad, or that leads to another server. */
export interface Proxy {
  /** The server's address, by this way. */
  url: string;
  /** Closes every connection and takes no new one. */
  cut(): void;
  /** Closes every connection, and nobody listens any more: new ones are refused. */
  leave(): Promise<void>;
  /** Resets every connection, and each new one as soon as something is sent. */
  reset(): void;
  /** Connections stay open, new ones are taken, and nothing passes either way, as with a process that is stopped. */
  hold(): void;
  /** From now on replies come so many ms later. */
  delay(ms: number): void;
  /** From now on replies trickle: so many bytes every 10 ms. 0: none come. Infinity: they come as they do. */
  narrow(bytes: number): void;
  /** Closes every connection; new ones are answered by `player` in the server's place. */
  play(player: (client: Socket) => void): void;
  /** New connections go to that server. */
  lead(to: URL): void;
  /** Ends whatever of the above was begun, but `lead`. */
  mend(): Promise<void>;
  close(): Promise<void>;
}

/**
 * @param to the server's address, with the port
 * @param port where to listen; any free one without it
 */
export async function startProxy(to: URL, port = 0): Promise<Proxy> {
  const sockets = new Set<Socket>();
  let target = to;
  let serve: (client: Socket) => void = pass;
  let width = Infinity;
  let late = 0;
  let held: PromiseWithResolvers<void> | undefined;

  /** Passes on what comes, in order: each piece late by as much as the others, and nothing while it is held. */
  function forward(from: Socket, to: Socket, isReply: boolean): void {
    let last = Promise.resolve();
    async function passOn(bytes: Buffer, due: number): Promise<void> {
      if (due > performance.now()) await sleep(due - performance.now());
      // The width may change while it sleeps: not a byte may be lost by that.
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
    // Nor does an end pass.
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
  /** Those that are there are closed; from now on it is `next` that takes them. */
  function become(next: (client: Socket) => void, end?: (socket: Socket) => void): void {
    serve = next;
    endAll(end);
  }

  const server = createServer((client) => serve(client));
  async function listen(at: number): Promise<void> {
    server.listen(at, '127.0.0.1');
    await once(server, 'listening');
  }
  async function leave(): Promise<void> {
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
    cut: () => become((client) => client.destroy()),
    leave,
    reset: () =>
      become(
        (client) => {
          keep(client);
          client.once('data', () => client.resetAndDestroy());
        },
        (socket) => socket.resetAndDestroy(),
      ),
    hold: () => void (held ??= Promise.withResolvers()),
    delay: (ms) => void (late = ms),
    narrow: (bytes) => void (width = bytes),
    play: (player) =>
      become((client) => {
        keep(client);
        player(client);
      }),
    lead: (other) => void (target = other),
    async mend() {
      // Who has spoken to somebody else goes on speaking to them.
      if (serve !== pass) become(pass);
      [width, late] = [Infinity, 0];
      held?.resolve();
      held = undefined;
      if (!server.listening) await listen(Number(new URL(url).port));
    },
    async close() {
      held?.resolve();
      if (server.listening) await leave();
    },
  };
}
