import { connect, type Socket } from 'node:net';

/** A reply; status 0: the connection was closed instead. */
export interface Reply {
  status: number;
  retryAfter: boolean;
}

export interface Connection {
  /** Sends one request at a time. */
  send: (request: Buffer) => void;
  close: () => void;
}

/** A persistent connection that parses only what is needed: a load generator that competes for CPU measures itself. */
export function open(origin: URL, onReply: (reply: Reply, connection: Connection) => void): Connection {
  let head = '';
  let left = 0;
  let reply: Reply | undefined;
  let isOver = false;
  const socket: Socket = connect(Number(origin.port), origin.hostname).setNoDelay();
  const connection: Connection = {
    send: (request) => void socket.write(request),
    close() {
      isOver = true;
      socket.destroy();
    },
  };

  /** Returns the number of bytes of `chunk` after the head; -1 while the head is incomplete. */
  function readHead(chunk: Buffer): number {
    head += chunk.toString('latin1');
    const end = head.indexOf('\r\n\r\n');
    if (end === -1) return -1;
    const text = head.slice(0, end);
    const behind = head.length - end - 4;
    head = '';
    left = Number(/\ncontent-length: (\d+)/i.exec(text)?.[1] ?? 0);
    const status = Number(text.slice(9, 12));
    reply = { status, retryAfter: status >= 429 && /\nretry-after: \d/i.test(text) };
    return behind;
  }

  socket.on('data', (chunk) => {
    const bytes = reply ? chunk.length : readHead(chunk);
    if (bytes === -1) return;
    left -= bytes;
    if (left > 0) return;
    const whole = reply!;
    reply = undefined;
    onReply(whole, connection);
  });
  socket.on('error', () => undefined);
  socket.once('close', () => {
    if (!isOver) onReply({ status: 0, retryAfter: false }, connection);
    isOver = true;
  });
  return connection;
}
