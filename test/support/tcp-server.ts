import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';

/**
 * Accepts connections on a free port, and calls `accept` with each and its number, from 1. By default, never sends
 * anything. `close` also ends open connections.
 */
export async function startTcpServer(
  accept: (socket: Socket, count: number) => void = () => undefined,
  host = '127.0.0.1',
) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    accept(socket, sockets.push(socket));
  }).listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://${host}:${port}`,
    connections: () => sockets.length,
    close(): void {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
