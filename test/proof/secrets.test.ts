import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { RequestListener, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { createIdentityProvider } from '../../deploy/local/identity-demo/provider.ts';
import type { Secrets } from '../../deploy/local/state.ts';
import { createClient, logIn } from '../secrets/client.ts';
import {
  failedJobs,
  identityLogin,
  keepStackSecrets,
  newPerson,
  passwords,
  pulse,
  filesAndLetters,
  tokens,
} from '../secrets/scenarios.ts';
import { runErrorScenarios } from '../secrets/error-scenarios.ts';
import { createSearch, type Finding } from '../secrets/secret-patterns.ts';
import {
  commandLines,
  logFiles,
  metrics,
  redisFiles,
  redisKeys,
  tables,
  type Place,
} from '../secrets/places.ts';
import { emails } from '../support/accounts.ts';
import { startCollector, type Collector } from '../support/collector.ts';
import { withDatabase } from '../support/connections.ts';
import { announce } from '../support/events.ts';
import { type HttpServer, startHttpServer } from '../support/http-server.ts';
import { client as platform } from '../support/identity.ts';
import { returnTo } from '../support/identity-stack.ts';
import { startOwnStack, type OwnStack } from '../support/own-stack.ts';
import { startRedis, type RedisServer } from '../support/redis-server.ts';
import { writeResult } from '../support/results.ts';
import { stack } from '../support/stack.ts';
import { until } from '../support/wait.ts';

/** Places that may contain a secret, with the reason. */
const allowedPlaces: { place: RegExp; kinds: string[]; why: string }[] = [
  {
    place: /^platform devices\.device\.token$/,
    kinds: ['push token'],
    why: 'The sender of messages needs the token and asks for it.',
  },
  {
    place: /^platform content\.failed_job\.(key|value)$/,
    kinds: ['text of an event'],
    why: 'The event as it was received, for inspection and retry.',
  },
  {
    place: /^platform auth\.session\.id_token$/,
    kinds: ['ID token', 'nonce'],
    why: 'The end of the session there asks for it (id_token_hint); it opens nothing, and goes with the session.',
  },
  {
    place: /^platform auth\.identity_login\.(nonce|client_state)$/,
    kinds: ['nonce', 'state of the client'],
    why: 'Half of a login that is under way: the other half, state and cookie, is only there as a hash. Ten minutes at most.',
  },
];

const canary = `canary-${randomBytes(12).toString('hex')}`;
const subject = 'sue';
const person = { subject, name: 'Sue Scan', email: 'sue@example.com', emailVerified: true, suborgs: [] };
const client = createClient();
const redisPassword = client.keep('password of Redis', randomBytes(18).toString('hex'));

let redis: RedisServer;
let collector: Collector;
let provider: HttpServer;
let own: OwnStack;
let identity: RequestListener | undefined;

/** Records the secrets that the identity provider gives to the platform. */
function overheard(answer: RequestListener): RequestListener {
  return (request, response) => {
    const end = response.end.bind(response) as (...args: unknown[]) => ServerResponse;
    response.end = ((...args: unknown[]) => {
      const [body] = args;
      if (request.url === '/token' && (typeof body === 'string' || body instanceof Buffer)) {
        const { access_token, id_token } = JSON.parse(body.toString()) as Record<string, string>;
        if (access_token) client.keep('access token of the identity provider', access_token);
        if (id_token) client.keep('ID token', id_token);
      }
      return end(...args);
    }) as typeof response.end;
    return void answer(request, response);
  };
}

beforeAll(async () => {
  redis = await startRedis({ requirepass: redisPassword, appendonly: 'yes' }, redisPassword);
  collector = await startCollector();
  provider = await startHttpServer((request, response) => identity?.(request, response));
  Object.assign(process.env, collector.environment, {
    LOG_LEVEL: 'debug',
    SLOW_REQUEST_MS: '1',
    SLOW_QUERY_MS: '1',
    IDENTITY_ISSUER: provider.origin,
    IDENTITY_CLIENT_ID: platform.id,
    IDENTITY_CLIENT_SECRET: platform.secret,
    IDENTITY_RETURN_TO: returnTo,
  });
  const redisUrl = new URL(redis.url);
  redisUrl.password = redisPassword;
  own = await startOwnStack(undefined, { external: { redisUrl: redisUrl.href } });
  const redirectUri = `${stack().gateway}/api/identity/login/callback`;
  const options = { issuer: provider.origin, client: { ...platform, redirectUri }, people: [person] };
  identity = overheard(createIdentityProvider(options));
}, 300_000);
afterAll(async () => {
  await own?.stop();
  provider?.close();
  collector?.stop();
  await redis?.stop();
}, 60_000);

async function places(): Promise<Place[]> {
  const platformTables = await tables('platform', stack().postgres);
  return [
    ...logFiles(own.folder),
    ...collector.bodies.map((content) => ({ name: 'traces', content })),
    ...(await metrics()),
    ...commandLines(),
    ...platformTables,
    ...(await tables('logs', stack().logs)),
    ...(await redisKeys()),
    ...redisFiles(redis.dir),
    ...client.errors,
  ];
}

/** Groups places, for example `log auth.log` as logs. */
const kindOf = ({ name }: Place): string =>
  /^(error replies|Redis file|command line)/.exec(name)?.[0] ?? name.split(' ')[0]!;

async function everythingIsWritten(): Promise<void> {
  const anyRow = 'SELECT FROM logs.slow_query LIMIT 1';
  await withDatabase(stack().logs, (logs) =>
    until('the slow logs are written', async () => (await logs.query(anyRow)).rowCount! > 0),
  );
  let spans = -1;
  await until(
    'no more traces come',
    async () => {
      const before = spans;
      spans = collector.spans.length;
      return before === spans;
    },
    10_000,
  ).catch(() => undefined);
}

test('a client calls everything, correctly and incorrectly', async () => {
  const kept = JSON.parse(readFileSync(join(own.folder, 'secrets.json'), 'utf8')) as Secrets;
  keepStackSecrets(client, {
    'password of PostgreSQL': kept.postgresPassword,
    'key secret': kept.authKeySecret,
    'password of the content server': kept.contentServerPassword,
  });
  const someone = await newPerson(client);
  await passwords(client, someone);
  await tokens(client, someone);
  await identityLogin(client, subject);
  await pulse(client);
  await filesAndLetters(client, someone);
  await failedJobs(client, someone);
  await runErrorScenarios(client, someone, own, redis);
  expect(client.errors.some(({ content }) => String(content).startsWith('500 '))).toBe(true);
  // Each request failed with the expected error.
  expect(client.surprises).toEqual([]);
}, 300_000);

test('the search finds known values in every place that can contain client data', async () => {
  const { token } = await logIn(client, emails.admin, 'demo-password');
  const address = `10.${randomBytes(3).join('.')}`;
  const headers = { 'X-Request-Id': canary, 'X-Forwarded-For': address };
  await client.send('/api/login', { json: { email: canary, password: 'x' }, headers });
  await client.send('/api/content/webform/0', { token, headers });
  await client.ask(201, '/api/admin/users', {
    json: { email: `${canary}@example.com`, name: canary },
    token,
  });
  await announce(`not JSON ${canary}`);
  await until('the event has failed', async () => {
    const { items } = await client.ask<{ items: { value: string }[] }>(200, '/api/admin/failed-jobs', {
      token,
    });
    return items.some(({ value }) => value?.includes(canary));
  });
  await everythingIsWritten();
  const { find } = createSearch([
    { kind: 'canary', value: canary },
    { kind: 'canary', value: address },
  ]);
  const inAll = async () =>
    new Set((await places()).filter(({ content }) => find(content).length > 0).map(({ name }) => name));
  const expected = [
    'log gateway.log',
    'log auth.log',
    'traces',
    'platform auth.user.name',
    'platform content.failed_job.value',
    'logs logs.slow_request.request_id',
    'logs logs.slow_query.request_id',
    'Redis',
    'error replies',
  ];
  const found = await until(
    'all is found',
    async () => {
      const seen = await inAll();
      const isInFiles = [...seen].some((name) => name.startsWith('Redis file'));
      return isInFiles && expected.every((name) => seen.has(name)) && seen;
    },
    20_000,
  );
  expect([...found]).toEqual(expect.arrayContaining(expected));
});

test('secrets occur only in the allowed places', async () => {
  await everythingIsWritten();
  const all = await places();
  const { count, find } = createSearch(client.secrets);
  const findings = new Map<string, Finding>();
  const allowed: Record<string, number> = {};
  const needed = new Set<(typeof allowedPlaces)[number]>();
  const searched: Record<string, { places: number; bytes: number }> = {};
  for (const place of all) {
    const sums = (searched[kindOf(place)] ??= { places: 0, bytes: 0 });
    sums.places += 1;
    sums.bytes += Buffer.byteLength(place.content);
    for (const finding of find(place.content)) {
      const exception = allowedPlaces.find(
        ({ place: where, kinds }) => where.test(place.name) && kinds.includes(finding.kind),
      );
      if (exception) {
        allowed[place.name] = (allowed[place.name] ?? 0) + 1;
        needed.add(exception);
      } else findings.set(`${place.name}: ${finding.kind}, ${finding.form}`, finding);
    }
  }
  const kinds = Object.fromEntries(
    [...Map.groupBy(client.secrets, ({ kind }) => kind)].map(([kind, some]) => [kind, some.length]),
  );
  writeResult('faults', 'secrets', {
    about:
      'How many secrets were used in a whole run, and how much was searched for them: in plain, in JSON, in URLs and forms, in hex, in base64 at every offset, whole and in halves. allowed: what was found where it may lie, and why it may.',
    secrets: { total: client.secrets.length, kinds, forms: count },
    searched,
    errorReplies: client.errors.length,
    found: findings.size,
    allowed: {
      counts: allowed,
      because: allowedPlaces.map(({ place, kinds, why }) => ({ place: place.source, kinds, why })),
    },
  });
  expect(Object.fromEntries(findings)).toEqual({});
  // Every exception must be needed.
  expect(allowedPlaces.filter((exception) => !needed.has(exception))).toEqual([]);
}, 300_000);
