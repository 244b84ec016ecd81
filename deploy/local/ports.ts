import { once } from 'node:events';
import { connect, createServer } from 'node:net';

export const HOST = '127.0.0.1';

/** Throws unless the address accepts connections. */
export async function listens(address: string): Promise<void> {
  const cut = address.lastIndexOf(':');
  const socket = connect({ host: address.slice(0, cut), port: Number(address.slice(cut + 1)) });
  await once(socket, 'connect', { signal: AbortSignal.timeout(1_000) }).finally(() => socket.destroy());
}

/** Also connects: macOS lets a second server bind to HOST, and take the clients of a server on all addresses. */
export const isFree = async (port: number): Promise<boolean> =>
  (await canBind(port)) && (await listens(`${HOST}:${port}`).catch(() => 'free')) === 'free';

const canBind = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, HOST, () => server.close(() => resolve(true)));
  });

/** Throws unless the URL returns 200 within a second. */
export async function checkReady(url: string): Promise<void> {
  const reply = await fetch(url, { signal: AbortSignal.timeout(1_000) });
  await reply.body?.cancel();
  if (reply.status !== 200) throw new Error('not ready');
}

/**
 * Returns a free port other than `reserved`. It is below the ephemeral range: from there, the system could assign the
 * port of a server that restarts to another socket, for example to a client, which would then connect to itself.
 */
export async function freePort(reserved: readonly number[] = []): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 10_000);
    if (!reserved.includes(port) && (await isFree(port))) return port;
  }
}
