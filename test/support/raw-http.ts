import { connect } from 'node:net';

/**
 * Sends bytes exactly as given and returns all that comes back until the other side closes, or until nothing more came
 * for a second. For what no HTTP client would send.
 */
export function sendRaw(origin: string, bytes: string | Buffer): Promise<string> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    const chunks: Buffer[] = [];
    const finish = () => {
      socket.destroy();
      resolve(Buffer.concat(chunks).toString('latin1'));
    };
    socket.setTimeout(30_000, finish);
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      socket.setTimeout(1_000);
    });
    socket.on('end', finish);
    socket.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNRESET' ? finish() : reject(error),
    );
  });
}

/** The status of a raw reply; undefined when the connection was closed without one. */
export function statusOf(raw: string): number | undefined {
  const status = /^HTTP\/1\.1 (\d{3})/.exec(raw)?.[1];
  return status === undefined ? undefined : Number(status);
}
