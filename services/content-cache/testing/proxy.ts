import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A way to a server that can be cut, as if the server were away. */
export interface Proxy {
  /** The server's address, by this way. */
  url: string;
  /** Closes every connection and takes no new one. */
  cut(): void;
  mend(): void;
  close(): Promise<void>;
}

/** @param to the server's address, with the port */
export async function startProxy(to: URL): Promise<Proxy> {
  const sockets = new Set<Socket>();
  let open = true;
  const server = createServer((client) => {
    if (!open) return client.destroy();
    const upstream = connect(Number(to.port), to.hostname);
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
      from.pipe(other);
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
    async close() {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}
