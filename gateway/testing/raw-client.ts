import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface RawReply {
  status: number;
  head: string;
  body: string;
  /** Whether the reply announces the end of the connection. */
  isLast: boolean;
}

/** Returns the first reply in `raw` and the rest; undefined while it is incomplete. All replies have a Content-Length. */
export function parseReply(raw: string): [RawReply, string] | undefined {
  const end = raw.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  const head = raw.slice(0, end + 2);
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1]);
  const length = status < 200 || status === 204 ? '0' : /^content-length: (\d+)\r$/im.exec(head)?.[1];
  if (!status || length === undefined) throw new Error(`not a reply with a length: ${raw.slice(0, 200)}`);
  const bodyEnd = end + 4 + Number(length);
  if (raw.length < bodyEnd) return undefined;
  const isLast = /^connection: close\r$/im.test(head);
  return [{ status, head, body: raw.slice(end + 4, bodyEnd), isLast }, raw.slice(bodyEnd)];
}

/**
 * Describes the problem of an error reply. Returns undefined if it matches the envelope: status, code and request ID are
 * equal in head and body.
 */
export function envelopeProblem({ status, head, body }: RawReply): string | undefined {
  let envelope: { error?: unknown; code?: unknown; message?: unknown; request_id?: unknown };
  try {
    envelope = JSON.parse(body) as typeof envelope;
  } catch {
    return `${status} without JSON`;
  }
  const id = /^x-request-id: (.*)\r$/im.exec(head)?.[1];
  const isWhole = typeof envelope.error === 'string' && typeof envelope.message === 'string';
  if (isWhole && envelope.code === status && envelope.request_id === id) return undefined;
  return `${status} with ${body.slice(0, 200)}`;
}

/**
 * Sends requests as bytes in sequence on one connection, and on a new connection after the old one was closed. `ask`
 * returns undefined if the connection was closed without a reply. It fails after `limitMs`, and if there are more replies
 * than requests.
 */
export function createRawClient(origin: string, limitMs = 30_000) {
  const { hostname, port } = new URL(origin);
  let socket: Socket | undefined;
  let raw = '';
  let changed: () => void = () => undefined;

  async function open(): Promise<Socket> {
    raw = '';
    const opened = connect(Number(port), hostname).setNoDelay().setEncoding('latin1');
    // A connection that was closed during a write may still have a reply.
    opened.on('error', () => undefined);
    opened.on('data', (piece: string) => {
      raw += piece;
      changed();
    });
    opened.once('close', () => changed());
    await once(opened, 'connect');
    return opened;
  }

  function close(): void {
    socket?.destroy();
    socket = undefined;
  }

  return {
    async ask(bytes: string): Promise<RawReply | undefined> {
      if (raw !== '') throw new Error(`a reply without a request: ${raw.slice(0, 200)}`);
      if (!socket || socket.destroyed) socket = await open();
      const current = socket;
      current.write(bytes, 'latin1');
      const reply = await new Promise<RawReply | undefined>((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`no reply within ${limitMs} ms`)), limitMs);
        changed = () => {
          try {
            const parsed = parseReply(raw);
            if (!parsed && !current.destroyed) return;
            raw = parsed?.[1] ?? '';
            resolve(parsed?.[0]);
          } catch (error) {
            reject(error as Error);
          }
          clearTimeout(timer);
        };
      }).finally(() => (changed = () => undefined));
      if (!reply || reply.isLast) close();
      return reply;
    },
    close,
  };
}
