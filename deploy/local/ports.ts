import { createServer } from 'node:net';

export const HOST = '127.0.0.1';
/** How far the internal listener (metrics, health) is from the public one. */
export const INTERNAL_OFFSET = 1000;

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

/** Picks until the ports that belong to the pick are free. */
async function pick(from: number, portsOf: (port: number) => number[]): Promise<number> {
  for (;;) {
    const port = from + Math.floor(Math.random() * 10_000);
    if ((await Promise.all(portsOf(port).map(isFree))).every(Boolean)) return port;
  }
}

/**
 * A free port below the range from which the system hands out ports by itself: nobody gets it by chance while its server
 * restarts, not even a client that tries to reach the server, which would then be connected to itself.
 */
export const freePort = (): Promise<number> => pick(10_000, (port) => [port]);

/** The first port of a row that is free as a whole, with the internal listeners' row above it; below that range, too. */
export function freeRow(length: number): Promise<number> {
  return pick(20_000, (base) =>
    Array.from({ length }, (_, index) => [base + index, base + index + INTERNAL_OFFSET]).flat(),
  );
}
