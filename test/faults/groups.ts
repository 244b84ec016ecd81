import { createHash, randomBytes, randomUUID } from 'node:crypto';
import * as contract from '@content-platform/contract';
import { call, checkError, type CallOptions } from '@content-platform/contract/client';
import { emails, logIn, machine, newAddress, password, type OwnUser } from '../support/accounts.ts';
import { newPushToken, register } from '../support/devices.ts';
import { createBrowser } from '../support/identity.ts';
import { returnTo } from '../support/identity-stack.ts';
import { newLetter } from '../support/letters.ts';
import { fileOf, newImage, uploaded } from '../support/media.ts';
import { freshId, save } from '../support/records.ts';
import { stack } from '../support/stack.ts';
import { until } from '../support/wait.ts';

export interface Answer {
  status: number;
  /** The error code, or another detail that distinguishes responses with the same status. */
  code?: string;
  cache?: string;
  ms: number;
  /** The reason why this response violates the contract. */
  wrong?: string;
}

export const model: contract.Model = 'accesscode';

const withinMs = 120_000;
const from = () => ({ 'X-Forwarded-For': newAddress() });
const signal = () => AbortSignal.timeout(withinMs);

/** Calls the gateway from a new client IP address, with a time limit. */
const send = <E extends contract.Endpoint>(endpoint: E, options: CallOptions<E>) =>
  call(stack().gateway, endpoint, {
    ...options,
    headers: { ...from(), ...options.headers },
    signal: signal(),
  });

const machineGrant = {
  grant_type: 'client_credentials',
  client_id: machine.id,
  client_secret: machine.secret,
};

/** Creates a cached record with this title and returns its id. */
async function inCache(token: string, title: string): Promise<number> {
  const id = freshId();
  await save(model, id, title);
  await untilCached(token, id);
  return id;
}

const untilCached = (token: string, id: number) =>
  until('it is cached', async () => (await readOf(token, id)).headers.get('x-cache') === 'hit');

const readOf = (token: string, id: number) => send(contract.readContent, { params: { model, id }, token });

/** Creates the users and data of one dependency's tests. */
export async function createTestData(user: OwnUser) {
  const { token } = await logIn(user.email, user.password);
  const title = `Newest ${randomUUID()}`;
  const id = await inCache(token, 'Old');
  await save(model, id, title);
  const granted = await send(contract.token, { body: machineGrant });
  if (granted.error) throw new Error(granted.error.error);
  const machine = granted.body.access_token;
  const cleared = await clearOf(machine, id);
  if (cleared.error) throw new Error(cleared.error.error);
  await untilCached(token, id);
  return {
    user: { ...user, token },
    sre: (await logIn(emails.sre, password)).token,
    machine,
    letter: await newLetter({ userId: user.id }),
    file: await uploaded(token, await newImage()),
    /** A record whose newest version is in the cache; reads must return this version. */
    cached: { id, title },
  };
}
export type TestData = Awaited<ReturnType<typeof createTestData>>;

const clearOf = (token: string, id: number) => send(contract.clearModel, { body: { model, id }, token });

/** Logs in at the identity provider and returns the request to our callback. */
async function comeBack(subject: string) {
  const browser = createBrowser();
  const challenge = createHash('sha256').update(randomBytes(32).toString('base64url')).digest('base64url');
  const query = new URLSearchParams({ return_to: returnTo, state: 'mine', code_challenge: challenge });
  const address = `${stack().gateway}/api/identity/login?${query.toString()}`;
  const login = await browser.go(address, { headers: from(), signal: signal() });
  const there = login.headers.get('location');
  if (there === null) throw new Error(`a login cannot begin: ${login.status}`);
  const back = await browser.logInThere(new URL(there), subject);
  const cookie = [...browser.cookies].map((pair) => pair.join('=')).join('; ');
  return { query: Object.fromEntries(back.searchParams), cookie };
}

/** Creates the data that one round of requests uses up, before the fault. */
export async function createRound(data: TestData, subject: string) {
  const { email, password } = data.user;
  const push = newPushToken();
  const { token } = await logIn(email, password);
  const [back, old] = await Promise.all([
    comeBack(subject),
    inCache(token, 'Old'),
    register(token, { token: push }),
  ]);
  // An unannounced change: the old version is in the cache, the new one in the database.
  const changed = { id: old, title: `Changed ${randomUUID()}` };
  const uncached = { id: freshId(), title: `Cold ${randomUUID()}` };
  for (const { id, title } of [changed, uncached]) await save(model, id, title);
  return { data, leaving: { token, push }, back, uncached, changed, image: await newImage() };
}
export type Round = Awaited<ReturnType<typeof createRound>>;

/** Endpoints that respond alike to faults, and the request that represents them. */
export interface Group {
  name: string;
  /** The healthy response. */
  healthy: string;
  request(round: Round): Promise<Omit<Answer, 'ms'>>;
}

type Reply = { status: number; headers: Headers; error?: contract.ErrorEnvelope | undefined };

/** Summarizes a reply that the typed client has validated against the contract. */
function answerOf({ status, headers, error }: Reply, more: Partial<Answer> = {}): Omit<Answer, 'ms'> {
  const cache = headers.get('x-cache');
  const wrong =
    status >= 500 && ![502, 503, 504].includes(status)
      ? `a bare ${status}`
      : status === 503 && !/^\d+$/.test(headers.get('retry-after') ?? '')
        ? '503 without Retry-After'
        : undefined;
  return {
    status,
    ...(error && { code: error.error }),
    ...(cache !== null && { cache }),
    ...(wrong !== undefined && { wrong }),
    ...more,
  };
}

/** Reads a record; any other version is an error. */
async function readNewest(token: string, { id, title }: { id: number; title: string }) {
  const reply = await readOf(token, id);
  const isStale = reply.body !== undefined && reply.body.title !== title;
  return answerOf(reply, isStale ? { wrong: `a stale read: ${reply.body.title}` } : {});
}

/** Clears the record and, after a successful clear, expects the new version. Can be repeated. */
export async function clearAndRead({ data, changed }: Round) {
  const answer = answerOf(await clearOf(data.machine, changed.id));
  if (answer.status !== 200 || answer.wrong) return answer;
  const { wrong } = await readNewest(data.user.token, changed);
  return wrong === undefined ? answer : { ...answer, wrong };
}

async function download({ data }: Round) {
  const headers = { Authorization: `Bearer ${data.user.token}` };
  const response = await fetch(data.file.variants[0]!.url, { headers, signal: signal() });
  const body = await response.arrayBuffer();
  if (response.ok) return answerOf(response);
  const text: unknown = JSON.parse(Buffer.from(body).toString());
  const { status, headers: replied } = response;
  return answerOf({ status, headers: replied, error: checkError(contract.readVariant, status, text) });
}

async function callback({ back: { query, cookie } }: Round) {
  const params = { identity: 'identity' };
  const reply = await send(contract.identityCallback, { params, query, headers: { cookie } });
  const location = reply.headers.get('location');
  const error = location && new URL(location).searchParams.get('error');
  return answerOf(reply, error ? { code: `error=${error}` } : {});
}

const group = <E extends contract.Endpoint>(
  name: string,
  healthy: string,
  endpoint: E,
  options: (round: Round) => CallOptions<E>,
) => ({
  name,
  service: endpoint.service,
  healthy,
  request: async (round: Round) => answerOf((await send(endpoint, options(round))) as Reply),
});

const groupsByHand: (Group & { service: contract.ServiceName })[] = [
  group('login', '200', contract.login, ({ data: { user } }) => ({
    body: { email: user.email, password: user.password },
  })),
  group('token', '200', contract.token, () => ({ body: machineGrant })),
  group('logout', '204', contract.logout, ({ leaving: { token, push } }) => ({
    body: { fcm_token: push },
    token,
  })),
  { name: 'identity login', service: 'auth', healthy: '302', request: callback },
  {
    name: 'content, cached',
    service: 'content-cache',
    healthy: '200 hit',
    request: ({ data }) => readNewest(data.user.token, data.cached),
  },
  {
    name: 'content, not cached',
    service: 'content-cache',
    healthy: '200 miss',
    request: ({ data, uncached }) => readNewest(data.user.token, uncached),
  },
  { name: 'clears', service: 'content-cache', healthy: '200', request: clearAndRead },
  group('failed jobs', '200', contract.listFailedJobs, ({ data }) => ({ token: data.sre })),
  group('upload', '201', contract.upload, ({ data, image }) => ({
    body: fileOf(image),
    token: data.user.token,
  })),
  { name: 'media', service: 'media-upload', healthy: '200', request: download },
  group('devices', '200', contract.registerFcmToken, ({ data }) => ({
    body: { token: newPushToken() },
    token: data.user.token,
  })),
  group('letters', '200', contract.updateLetterSkippedWebform, ({ data }) => ({
    body: { letter_id: data.letter, webform_id: 2, skipped: true, reason: randomUUID() },
    token: data.user.token,
  })),
  group('pulse', '200', contract.pulse, ({ data }) => ({ token: data.sre })),
  {
    name: 'health',
    service: 'gateway',
    healthy: '200',
    async request() {
      const reply = await send(contract.health, {});
      const state = reply.body?.status;
      return answerOf(reply, state && state !== 'ok' ? { code: state } : {});
    },
  },
  group('documents', '200', contract.openapiDocument, () => ({})),
];

/** Creates the group of a service without its own group: the service's first list that every user may read. */
function listOf(service: contract.ServiceName): Group {
  const list = contract.endpoints.find(
    ({ service: owner, method, access, params }) =>
      owner === service && method === 'GET' && ['user', 'reader'].includes(String(access)) && !params,
  );
  if (!list) throw new Error(`Add a group to test/faults/groups.ts that calls an endpoint of ${service}`);
  return group(service, '200', list, ({ data }) => ({ token: data.user.token }));
}

export const groups: Group[] = [
  ...groupsByHand,
  ...contract.services
    .filter(({ name }) => !groupsByHand.some(({ service }) => service === name))
    .map(({ name }) => listOf(name)),
];
export async function measure(group: Group, round: Round): Promise<Answer> {
  const start = performance.now();
  const answer = await group.request(round).catch((error: Error) => ({ status: 0, wrong: error.message }));
  return { ...answer, ms: Math.round(performance.now() - start) };
}
