import { randomInt } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface SlowClient {
  kind: string;
  socket: Socket;
  openedAt: number;
  /** performance.now() when the server closed the connection; a client that reads nothing does not notice the close. */
  closedAt?: number;
  status?: number;
}

export interface SlowKind {
  kind: string;
  count: number;
  /** Number of connections opened every 50 ms; 20 by default. */
  together?: number;
  /** Bytes that it sends immediately. */
  head: (index: number) => string;
  /** Bytes that it sends each second. */
  more?: string;
  /** The client reads nothing of its reply. */
  readsNothing?: true;
}

const head = (line: string, headers: readonly string[]) =>
  [line, 'Host: platform', ...headers, ''].join('\r\n');

const pauseMs = 50;

/** Returns each kind of slow client; `share` computes its count. `tokens` are the access tokens for uploads. */
export const slowKinds = (share: (part: number) => number, tokens: readonly string[]): SlowKind[] => [
  // A header block that never ends.
  {
    kind: 'headers',
    count: share(0.35),
    head: () => head('GET /health HTTP/1.1', []),
    more: 'X-More: yes\r\n',
  },
  { kind: 'silent', count: share(0.15), head: () => '' },
  {
    kind: 'json',
    count: share(0.21),
    head: () =>
      `${head('POST /api/token HTTP/1.1', ['Content-Type: application/json', 'Content-Length: 4000', ''])}{`,
    more: ' ',
  },
  {
    kind: 'upload',
    count: share(0.2),
    head: (index) =>
      `${head('POST /api/upload HTTP/1.1', [
        `Authorization: Bearer ${tokens[index % tokens.length]}`,
        'Content-Type: multipart/form-data; boundary=x',
        'Content-Length: 1000000',
        '',
      ])}--x\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n%PDF-1.4\n`,
    more: 'x',
  },
];

/** A client that requests a file larger than the buffers on the way and reads none of it. */
export const nonReadingClient = (
  count: number,
  together: number,
  files: readonly { path: string; token: string }[],
): SlowKind => ({
  kind: 'reader',
  count,
  together,
  head: (index) => {
    const { path, token } = files[index % files.length]!;
    return head(`GET ${path} HTTP/1.1`, [`Authorization: Bearer ${token}`, '']);
  },
  readsNothing: true,
});

export async function startSlowClients(origin: string, kinds: readonly SlowKind[]) {
  const timers = new Set<NodeJS.Timeout>();
  const clients: SlowClient[] = [];
  let reconnects = true;

  function start(kind: SlowKind, index: number): void {
    const { hostname, port } = new URL(origin);
    // Clients with an address each. 127.0.0.1 is a proxy that the gateway trusts, with limits of its own.
    const localAddress = `127.${randomInt(1, 255)}.${randomInt(256)}.1`;
    const socket = connect({ port: Number(port), host: hostname, localAddress });
    const client: SlowClient = { kind: kind.kind, socket, openedAt: performance.now() };
    // A connection that is closed while it sends is reset.
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => (client.status ??= Number(chunk.toString('latin1', 9, 12))));
    if (kind.readsNothing) socket.pause();
    let wasConnected = false;
    socket.once('connect', () => {
      wasConnected = true;
      socket.write(kind.head(index));
    });
    const { more } = kind;
    const timer = setInterval(
      () => {
        if (more !== undefined && socket.writable) socket.write(more);
      },
      1_000 + randomInt(50),
    );
    timers.add(timer);
    socket.once('close', () => {
      client.closedAt = performance.now();
      clearInterval(timer);
      // Without a listener it would reconnect forever.
      if (reconnects && wasConnected) start(kind, index);
    });
    clients.push(client);
  }

  for (const kind of kinds) {
    // Node accepts one connection per event loop iteration.
    const { together = 20 } = kind;
    for (let index = 0; index < kind.count; index += 1) {
      start(kind, index);
      if ((index + 1) % together === 0) await sleep(pauseMs);
    }
  }
  return {
    clients,
    stopReconnecting() {
      reconnects = false;
    },
    stop() {
      reconnects = false;
      for (const timer of timers) clearInterval(timer);
      for (const { socket } of clients) socket.destroy();
    },
  };
}
