import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';

/** Accepts connections on a free port and never sends anything. */
export async function startSilentServer() {
  const sockets: Socket[] = [];
  const server = createServer((socket) => void sockets.push(socket.on('error', () => undefined)));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    accepted: () => sockets.length,
    close(): void {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
