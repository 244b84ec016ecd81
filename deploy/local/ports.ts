import { createServer } from 'node:net';

export const HOST = '127.0.0.1';

/** True when nobody listens on this port of the loopback address. */
export const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, HOST, () => server.close(() => resolve(true)));
  });

/** The usual port of a server if it is free, else (or when none is usual) any free one. */
export const usualOrFree = async (usual?: number): Promise<number> =>
  usual !== undefined && (await isFree(usual)) ? usual : freePort();

/**
 * A free port below the range from which the system hands out ports by itself: nobody gets it by chance while its server
 * restarts, not even a client that tries to reach the server, which would then be connected to itself.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 10_000);
    if (await isFree(port)) return port;
  }
}
