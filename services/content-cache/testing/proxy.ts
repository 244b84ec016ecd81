import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { Transform } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';

/** A way to a server that can be cut, as if the server were away, made narrow, or led to another server. */
export interface Proxy {
  /** The server's address, by this way. */
  url: string;
  /** Closes every connection and takes no new one. */
  cut(): void;
  mend(): void;
  /** From now on replies trickle: so many bytes every 10 ms. 0: none come. Infinity: they come as they do. */
  narrow(bytes: number): void;
  /** New connections go to that server. */
  lead(to: URL): void;
  close(): Promise<void>;
}

/** @param to the server's address, with the port */
export async function startProxy(to: URL): Promise<Proxy> {
  const sockets = new Set<Socket>();
  let open = true;
  let target = to;
  let width = Infinity;
  const trickle = () =>
    new Transform({
      transform(bytes: Buffer, _, done) {
        void (async () => {
          // The width may change while it sleeps: not a byte may be lost by that.
          for (let sent = 0; sent < bytes.length && !this.destroyed;) {
            const piece = bytes.subarray(sent, sent + width);
            this.push(piece);
            sent += piece.length;
            if (sent < bytes.length) await sleep(10);
          }
          done();
        })();
      },
    });
  const server = createServer((client) => {
    if (!open) return client.destroy();
    const upstream = connect(Number(target.port), target.hostname);
    for (const [from, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on('error', () => other.destroy());
      from.on('close', () => {
        sockets.delete(from);
        other.destroy();
      });
      if (from === client) from.pipe(other);
      else from.pipe(trickle()).pipe(other);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(to);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const cut = () => {
    open = false;
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: url.href,
    cut,
    mend: () => void (open = true),
    narrow: (bytes) => void (width = bytes),
    lead: (other) => void (target = other),
    async close() {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}
