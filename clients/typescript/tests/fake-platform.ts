import { type Client, type ClientOptions, createClient, type TokenStorage } from '../src/index.ts';
import { failure, type FakeReply, ok, startFakeServer } from '../../../test/support/fake-server.ts';

/** Starts a platform that returns these replies by path, with a client for it. */
export async function startFake(routes: Record<string, FakeReply[]>, options: Partial<ClientOptions> = {}) {
  const server = await startFakeServer(routes);
  const newClient = (more: Partial<ClientOptions> = {}): Client =>
    createClient({ url: `${server.origin}/`, ...options, ...more });
  return { client: newClient(), seen: server.seen, server, newClient };
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
