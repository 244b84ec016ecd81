import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Received {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;
export type RecordingUpstream = Awaited<ReturnType<typeof startUpstream>>;

export const sayOk: Answer = (_request, response) =>
  void response.setHeader('Content-Type', 'application/json').end('{"ok":true}');

/** Gateways also probe port + 1000, where a server of another worker of jest could listen at the same address. */
export const host =
  process.platform === 'linux' ? `127.0.1.${process.env['JEST_WORKER_ID'] ?? 1}` : '127.0.0.1';

/** Starts a service that records its requests. It returns 200 `{"ok":true}`, or calls `answer`. */
export async function startUpstream(port = 0) {
  const server = createServer(async (request, response) => {
    let body = '';
    request.on('error', () => undefined);
    request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
    const { method, url, headers } = request;
    await once(request, 'end').catch(() => undefined);
    upstream.received.push({ method: method!, url: url!, headers, body });
    upstream.answer(request, response);
  });
  server.on('connection', () => (upstream.connections += 1));
  // The same backlog as `run`: no connection of a burst waits for a retry of the kernel.
  server.listen({ port, host, backlog: 4_096 });
  await once(server, 'listening');
  const upstream = {
    url: `http://${host}:${(server.address() as AddressInfo).port}`,
    received: [] as Received[],
    answer: sayOk,
    connections: 0,
    async close(): Promise<void> {
      if (!server.listening) return;
      server.close().closeAllConnections();
      await once(server, 'close');
    },
  };
  return upstream;
}
