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

/** A port that the system calls free. */
export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, HOST, () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });

/**
 * The first port of a row that is free as a whole, with the internal listeners' row above it.
 * Below the range from which the system hands out ports by itself, so that nobody gets one of them by chance.
 */
export async function freeRow(length: number): Promise<number> {
  for (;;) {
    const base = 20_000 + Math.floor(Math.random() * 10_000);
    const row = Array.from({ length }, (_, index) => [base + index, base + index + INTERNAL_OFFSET]).flat();
    if ((await Promise.all(row.map(isFree))).every(Boolean)) return base;
  }
}
