import { connect } from 'node:net';

/** Sends bytes that no HTTP client would send. Returns what arrives until the peer closes or is silent for a second. */
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

/** Returns the status of a raw reply; undefined if the connection was closed without one. */
export function statusOf(raw: string): number | undefined {
  const status = /^HTTP\/1\.1 (\d{3})/.exec(raw)?.[1];
  return status === undefined ? undefined : Number(status);
}
