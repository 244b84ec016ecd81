import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { type Client, type ClientOptions, createClient, type TokenStorage } from '../src/index.ts';
import { startHttpServer } from '../../../test/support/http-server.ts';

/** A reply: a status with headers and a body, a function that decides later, or a lost connection. */
export type FakeReply =
  | { status: number; body?: unknown; headers?: Record<string, string> }
  | 'lost'
  | ((request: Seen) => FakeReply | Promise<FakeReply>);

export interface Seen {
  path: string;
  headers: IncomingMessage['headers'];
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

/** Starts a platform that returns these replies by path; the last one of a path repeats. */
export async function startFake(routes: Record<string, FakeReply[]>, options: Partial<ClientOptions> = {}) {
  const seen: Seen[] = [];
  const server = await startHttpServer(async (request, response) => {
    const path = request.url!.split('?')[0]!;
    const one = { path: request.url!, headers: request.headers, body: await text(request) };
    seen.push(one);
    const replies = routes[path] ?? [failure(404, 'not_found')];
    await respond(replies.length > 1 ? replies.shift()! : replies[0]!, one, response);
  });
  const newClient = (more: Partial<ClientOptions> = {}): Client =>
    createClient({ url: `${server.origin}/`, ...options, ...more });
  return { client: newClient(), seen, server, newClient };
}
/** A client and the platform that it calls, with the requests that it received. */
export type Fake = Awaited<ReturnType<typeof startFake>>;

/** The reply to a login or a refresh. */
export const tokens = (n: number): FakeReply =>
  ok({ token: `t${n}`, access_token: `t${n}`, refresh_token: `r${n}`, expires_in: 900, scope: '' });

export const atOnce = { 'Retry-After': '0' };
export const busy = failure(503, 'service_unavailable', atOnce);
export const never: FakeReply = () => new Promise(() => undefined);

/** A storage whose functions return promises, as those of mobile apps do. */
export function newStorage(): TokenStorage & { values: Map<string, string> } {
  const values = new Map<string, string>();
  return {
    values,
    getItem: async (key) => values.get(key) ?? null,
    setItem: async (key, value) => void values.set(key, value),
    removeItem: async (key) => void values.delete(key),
  };
}

export const credentials = { email: 'a@example.com', password: 'p' };

/** Logs in at a platform that accepts only the access token t2, so that the first request needs a refresh. */
export async function loggedIn(refresh: FakeReply[], options: Partial<ClientOptions> = {}): Promise<Fake> {
  const me = ok({ id: 1 });
  const onlyWithT2: FakeReply = ({ headers }) =>
    headers.authorization === 'Bearer t2' ? me : failure(401, 'invalid_token');
  const fake = await startFake(
    {
      '/api/login': [tokens(1)],
      '/api/token': refresh,
      '/api/me': [onlyWithT2],
      '/api/logout': [me],
    },
    options,
  );
  await fake.client.login(credentials);
  return fake;
}

/** Calls the platform several times at once, and returns the ids and the codes of the errors. */
export async function outcomesOf(client: Client, count: number): Promise<unknown[]> {
  const calls = Array.from({ length: count }, async () => client.request('me'));
  const settled = await Promise.allSettled(calls);
  return settled.map((one) =>
    one.status === 'fulfilled' ? one.value.id : (one.reason as { code: string }).code,
  );
}
