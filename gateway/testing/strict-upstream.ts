import { startTcpServer } from '../../test/support/tcp-server.ts';

export interface WholeRequest {
  method: string;
  target: string;
  head: string;
  body: string;
  /** Index of the connection that the request arrived on. */
  connection: number;
}

const requestLine = /^([A-Z]+) (\/[!-~]*) HTTP\/1\.1$/;
const headerLine = /^([!#$%&'*+.^`|~\w-]+): ([\t -~\x80-\xff]*)$/;

/** Returns the data of a chunked body at the start of `raw` and its encoded length; undefined while it is incomplete. */
function parseChunks(raw: string): { body: string; length: number } | undefined {
  let body = '';
  for (let at = 0; ;) {
    const line = /^([0-9a-f]+)\r\n/i.exec(raw.slice(at, at + 20));
    if (!line) {
      if (raw.length - at > 18) throw new Error('chunk without a size');
      return undefined;
    }
    const [text, digits] = line;
    const size = parseInt(digits!, 16);
    const end = at + text.length + size;
    if (raw.length < end + 2) return undefined;
    if (raw.slice(end, end + 2) !== '\r\n') throw new Error('chunk longer than its size, or trailers');
    body += raw.slice(at + text.length, end);
    at = end + 2;
    if (size === 0) return { body, length: at };
  }
}

/**
 * Returns the first request in `raw` and its length; undefined while it is incomplete. Throws for everything ambiguous:
 * accepts RFC 9112 without its leniencies, with at most one length in one notation.
 */
function parseRequest(
  raw: string,
): { request: Omit<WholeRequest, 'connection'>; length: number } | undefined {
  const end = raw.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  const head = raw.slice(0, end);
  const [first = '', ...lines] = head.split('\r\n');
  const [, method, target] = requestLine.exec(first) ?? [];
  if (!method || !target) throw new Error(`not a request line: ${first}`);
  const headers = lines.map((line) => {
    const [, name, value] = headerLine.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new Error(`not a header: ${line}`);
    // Many servers read _ as -.
    return [name.toLowerCase().replaceAll('_', '-'), value] as const;
  });
  const all = (wanted: string) => headers.filter(([name]) => name === wanted).map(([, value]) => value);
  const [lengths, codings] = [all('content-length'), all('transfer-encoding')];
  if (lengths.length + codings.length > 1) throw new Error(`more than one length: ${head}`);
  if (all('host').length !== 1) throw new Error(`not one host: ${head}`);
  if (!/^(?:0|[1-9]\d*)$/.test(lengths[0] ?? '0') || (codings[0] ?? 'chunked') !== 'chunked')
    throw new Error(`invalid length: ${head}`);
  const rest = raw.slice(end + 4);
  const request = { method, target, head };
  if (codings.length > 0) {
    const chunks = parseChunks(rest);
    return chunks && { request: { ...request, body: chunks.body }, length: end + 4 + chunks.length };
  }
  const length = Number(lengths[0] ?? 0);
  if (rest.length < length) return undefined;
  return { request: { ...request, body: rest.slice(0, length) }, length: end + 4 + length };
}

export const markOf = (target: string) => /[?&]mark=([\w-]+)/.exec(target)?.[1] ?? '';

/**
 * A service on bare connections that accepts only requests that every server reads in the same way, and returns the mark
 * of each request. `problems` lists the requests that it could not read.
 */
export async function startStrictUpstream() {
  const received: WholeRequest[] = [];
  const problems: string[] = [];
  const server = await startTcpServer((socket, connection) => {
    let raw = '';
    socket.setEncoding('latin1').on('data', (piece: string) => {
      raw += piece;
      try {
        for (let parsed = parseRequest(raw); parsed; parsed = parseRequest(raw)) {
          raw = raw.slice(parsed.length);
          received.push({ ...parsed.request, connection });
          const body = JSON.stringify({ mark: markOf(parsed.request.target) });
          socket.write(
            `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
          );
          // The gateway sends one request at a time on a connection: a second request was smuggled.
          if (raw !== '') problems.push(`something behind a request: ${raw}`);
        }
      } catch (error) {
        problems.push((error as Error).message);
        socket.destroy();
      }
    });
  });
  return { ...server, received, problems };
}
