import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { startHttpServer } from './http-server.ts';

/** The body is a text, or an object that is sent as JSON. */
export interface Reply {
  status: number;
  body?: unknown;
  headers?: Record<string, string>;
}

/** A reply, a function that decides later, or a lost connection. */
export type FakeReply = Reply | 'lost' | ((request: Seen) => FakeReply | Promise<FakeReply>);

interface Seen {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export const ok = (body: unknown): FakeReply => ({ status: 200, body });

export function failure(status: number, error: string, headers: Record<string, string> = {}): FakeReply {
  return { status, headers, body: { error, code: status, message: 'M', request_id: 'R' } };
}

async function respond(reply: FakeReply, seen: Seen, response: ServerResponse): Promise<void> {
  if (typeof reply === 'function') return respond(await reply(seen), seen, response);
  if (reply === 'lost') return void response.destroy();
  const type = { 'Content-Type': 'application/json' };
  response.writeHead(reply.status, { ...type, ...reply.headers });
  response.end(typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body ?? {}));
}

/** Starts a server that returns these replies by path; the last one of a path repeats. Records the requests. */
export async function startFakeServer(routes: Record<string, FakeReply[]>) {
  const seen: Seen[] = [];
  const { origin, close } = await startHttpServer(async (request, response) => {
    const path = request.url!.split('?')[0]!;
    const one = { path: request.url!, headers: request.headers, body: await text(request) };
    seen.push(one);
    const replies = routes[path] ?? [failure(404, 'not_found')];
    await respond(replies.length > 1 ? replies.shift()! : replies[0]!, one, response);
  });
  return { origin, seen, close };
}
export type FakeServer = Awaited<ReturnType<typeof startFakeServer>>;
