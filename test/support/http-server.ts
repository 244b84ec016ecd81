import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Serves `handler` on a free loopback port. `close` also ends connections in use. */
export async function startHttpServer(handler: RequestListener) {
  const server = createServer(handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: (): void => void server.close().closeAllConnections(),
  };
}
export type HttpServer = Awaited<ReturnType<typeof startHttpServer>>;
