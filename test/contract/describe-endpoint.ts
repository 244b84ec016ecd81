import { afterAll, describe, expect, test } from '@jest/globals';
import { errorsOf, type Endpoint, type ErrorCode } from '@content-platform/contract';
import { call, checkError, isError, type Answer, type CallOptions } from '@content-platform/contract/client';
import { stack } from '../support/stack.ts';
import { ageSession, emails, logIn, password, tokenOf, type Account } from '../support/accounts.ts';
import { checkExample, type Call } from '../support/examples.ts';
import { closeRecords } from '../support/records.ts';
import { formOf } from '../support/form.ts';
import { sendRaw, statusOf } from '../support/raw-http.ts';
import { until } from '../support/wait.ts';

/** Errors that need a failed dependency, a high load or another configuration; test/faults and the gateway's tests cover them. */
const elsewhere: readonly ErrorCode[] = [
  'internal_error',
  'bad_gateway',
  'service_unavailable',
  'gateway_timeout',
  'overloaded',
  'cache_unavailable',
  'identity_unavailable',
  'mail_disabled',
  'rate_limited',
  'request_timeout',
  'image_too_costly',
  'mfa_enrollment_required',
  'mfa_required',
];

export interface Subject<E extends Endpoint> {
  /** Calls the endpoint through the gateway, or at `at`. Checks the reply against the contract. */
  ask(options?: CallOptions<E> & { as?: Account; at?: string }): Promise<Answer<E>>;
  /** Sends requests that the typed client cannot express: any path, headers and body. */
  send(options: {
    path?: string;
    body?: string | Uint8Array<ArrayBuffer>;
    headers?: Record<string, string>;
    as?: Account;
  }): Promise<Answer<E>>;
}

export interface Example {
  /** The path with its parameters filled in; default: with ids of records that do not exist. */
  path?: string;
  /** The account that calls the endpoint; default: the demo user or, if the endpoint needs a scope, the admin. */
  as?: Account;
  /** A valid body, if the contract has one. For a form: the bytes of its file. */
  body?: Record<string, unknown> | Uint8Array<ArrayBuffer>;
  /** Requests that the contract refuses with 422 validation_failed. */
  invalid?: Invalid;
  /** The request names a record that does not exist; default: the path does. */
  isMissing?: boolean;
}
type FullExample = Example & { path: string; as: Account | undefined };

const hasId = ({ path, cookies }: Endpoint) => /\/:id(\/|$)/.test(path) && !cookies;

function withDefaults(endpoint: Endpoint, example: Example): FullExample {
  const { access, path } = endpoint;
  const caller = access === 'user' || access === 'reader' ? 'user' : 'admin';
  return {
    path: path.replace(':identity/', 'identity/').replace(/:\w+/g, '9007199254740991'),
    isMissing: example.path === undefined && hasId(endpoint) && errorsOf(endpoint).includes('not_found'),
    as: access === 'public' ? undefined : caller,
    ...example,
  } as FullExample;
}

interface Invalid {
  /** Values that replace a field of the example's body; undefined removes the field. */
  fields?: Readonly<Record<string, readonly unknown[]>>;
  bodies?: readonly Record<string, unknown>[];
  queries?: readonly string[];
  paths?: readonly string[];
}

const takesJson = ({ body }: Endpoint) => body?.kinds.includes('json') ?? false;

function encode(
  { body }: Example,
  endpoint: Endpoint,
): { type?: string; body?: string | Uint8Array<ArrayBuffer> } {
  if (body === undefined) return {};
  if (body instanceof Uint8Array) return formOf([{ bytes: body }]);
  if (!takesJson(endpoint)) {
    const fields = new URLSearchParams(body as Record<string, string>);
    return { type: 'application/x-www-form-urlencoded', body: fields.toString() };
  }
  return { type: 'application/json', body: JSON.stringify(body) };
}

/**
 * Defines the tests of one endpoint, which call it through the gateway. What the contract alone defines is tested in
 * the same way for every endpoint; `tests` adds the rest. The last test fails if a documented response was never
 * returned. Closes the connections of test/support/records.ts afterwards.
 */
export function describeEndpoint<E extends Endpoint>(
  endpoint: E,
  partial: Example,
  tests: (subject: Subject<E>) => void,
): void {
  const example = withDefaults(endpoint, partial);
  const { gateway } = stack();
  const seen = new Set<string>();
  const calls: Call[] = [];

  function note(answer: Answer<E>): Answer<E> {
    seen.add(answer.error ? answer.error.error : String(answer.status));
    return answer;
  }
  const bearer = async (as: Account | undefined) =>
    as ? { Authorization: `Bearer ${await tokenOf(gateway, as)}` } : {};
  const { type, body } = encode(example, endpoint);
  const withType: Record<string, string> = type === undefined ? {} : { 'Content-Type': type };
  const valid = body ? { body } : {};

  const subject: Subject<E> = {
    async ask({ as = example.as, at = gateway, ...options } = {}) {
      const token = options.token ?? (as ? await tokenOf(at, as) : undefined);
      const answer = note(await call(at, endpoint, { ...(options as CallOptions<E>), token }));
      const { status, body: reply, error } = answer;
      if (!error && status !== 304) calls.push({ ...options, status, reply });
      return answer;
    },
    async send({ path = example.path, body, headers, as = example.as }) {
      const response = await fetch(gateway + path, {
        method: endpoint.method,
        headers: { ...withType, ...(await bearer(as)), ...headers },
        ...(body === undefined ? {} : { body }),
        redirect: 'manual',
      });
      if (endpoint.responses[response.status] && !isError(response)) {
        await response.arrayBuffer();
        return note({ status: response.status, headers: response.headers, body: undefined } as Answer<E>);
      }
      const error = checkError(endpoint, response.status, await response.json());
      return note({ status: response.status, headers: response.headers, body: undefined, error });
    },
  };

  describe(`${endpoint.method} ${endpoint.path}`, () => {
    afterAll(closeRecords);
    if (endpoint.access !== 'public') protectedTests(endpoint, example, subject);
    if (endpoint.body) {
      bodyTests(endpoint, example, subject);
      if (endpoint.body.kinds[0] === 'multipart') formTests(subject);
      if (takesJson(endpoint)) jsonTests(endpoint, example, subject);
    } else {
      test('refuses a request body', async () => {
        const { hostname, port } = new URL(gateway);
        const head = Object.entries({
          Host: `${hostname}:${port}`,
          'Content-Length': '2',
          ...(await bearer(example.as)),
        });
        const lines = head.map(([name, value]) => `${name}: ${value}\r\n`).join('');
        const raw = await sendRaw(gateway, `${endpoint.method} ${example.path} HTTP/1.1\r\n${lines}\r\n{}`);
        expect(statusOf(raw)).toBe(400);
        expect(raw).toMatch(/"error":"malformed_request".*accepts no body/);
        seen.add('malformed_request');
      });
    }
    if (endpoint.method === 'GET') headTests(endpoint, example);
    test('refuses an ambiguous request target', async () => {
      const { error } = await subject.send({ path: `${example.path}?x=%00`, ...valid });
      expect(error?.error).toBe('malformed_target');
    });
    if (endpoint.service !== 'gateway') {
      test('refuses a query parameter that is not in the contract', async () => {
        const { error } = await subject.send({ path: `${example.path}?surprise=1`, ...valid });
        expect(error?.error).toBe('validation_failed');
      });
    }
    invalidTests(endpoint, example, subject);
    if (example.isMissing) {
      test('returns 404 for a record that does not exist', async () => {
        expect((await subject.send(valid)).error?.error).toBe('not_found');
      });
    }
    tests(subject);
    test('returned every documented response during these tests', () => {
      const documented = [...Object.keys(endpoint.responses), ...errorsOf(endpoint)];
      const missing = documented.filter(
        // 5xx pages for browsers are tested elsewhere, like the error codes above.
        (answer) => !seen.has(answer) && !elsewhere.includes(answer as ErrorCode) && !(Number(answer) >= 500),
      );
      expect(missing).toEqual([]);
    });
    test('returned a reply like the example in the contract', () => checkExample(endpoint, calls));
  });
}

/** Invalid values for every list and every id; services/contract/schemas.test.ts tests more of them. */
const badPages = ['limit=0', 'limit=101', 'cursor=!'];
const badIds = ['0', 'x', '9007199254740992'];

function invalidTests<E extends Endpoint>(endpoint: E, example: FullExample, { send }: Subject<E>): void {
  const { path, body, invalid: { fields = {}, bodies = [], queries = [], paths = [] } = {} } = example;
  const replaced = Object.entries(fields).flatMap(([name, values]) =>
    values.map((wrong) => ({ ...body, [name]: wrong })),
  );
  const wrongBodies = [...replaced, ...bodies];
  const hasPages = Object.hasOwn(endpoint.query?.shape ?? {}, 'cursor');
  const wrongPaths = [
    ...[...queries, ...(hasPages ? badPages : [])].map((query) => `${path}?${query}`),
    ...(hasId(endpoint) ? badIds : []).map((id) => path.replace(/\/\d+(?=\/|$)/, `/${id}`)),
    ...paths,
  ];
  const valid = encode(example, endpoint).body;
  const requests = [
    ...wrongBodies.map((wrong) => [JSON.stringify(wrong), { body: JSON.stringify(wrong) }] as const),
    ...wrongPaths.map((wrong) => [wrong, { path: wrong, ...(valid && { body: valid }) }] as const),
  ];
  if (requests.length === 0) return;
  test.each(requests)('returns 422 for %.80s', async (_, request) => {
    expect((await send(request)).error?.error).toBe('validation_failed');
  });
}

function protectedTests<E extends Endpoint>(endpoint: E, example: FullExample, { send }: Subject<E>): void {
  const body = example.body ? { body: encode(example, endpoint).body! } : {};
  const path = example.path;
  test('returns 401 without a token', async () => {
    const response = await fetch(stack().gateway + path, { method: endpoint.method });
    expect(response.headers.get('www-authenticate')).toMatch(/^Bearer/);
    expect(checkError(endpoint, response.status, await response.json()).error).toBe('token_required');
    const answer = await send({ ...body, headers: { Authorization: 'Basic eDp5' } });
    expect(answer.error?.error).toBe('token_required');
  });
  test('returns 401 for a token that the platform did not issue', async () => {
    const { error } = await send({ ...body, headers: { Authorization: 'Bearer a.b.c' } });
    expect(error?.error).toBe('invalid_token');
  });
  if (!endpoint.beforePasswordChange) {
    test('returns 403 until the temporary password is changed', async () => {
      const { error } = await send({ ...body, as: 'temporary' });
      expect(error?.error).toBe('password_change_required');
    });
  }
  if (endpoint.recentLogin) {
    test('returns 403 if the login is over 15 minutes old', async () => {
      const { token } = await logIn(emails.admin, password);
      await ageSession(token);
      const { error } = await send({ ...body, headers: { Authorization: `Bearer ${token}` } });
      expect(error?.error).toBe('reauthentication_required');
    });
  }
  const outsider: Account = ['user', 'reader'].includes(String(endpoint.access)) ? 'machine' : 'user';
  test(`returns 403 for the token of ${outsider}`, async () => {
    const { error } = await send({ ...body, as: outsider });
    expect(error?.error).toBe('insufficient_scope');
  });
}

/** Headers that differ between replies, and headers of the transfer: fetch closes the connection after HEAD. */
const transfer = ['connection', 'keep-alive', 'transfer-encoding'];
const changing = [...transfer, 'date', 'server-timing', 'x-cache', 'x-request-id'];

function headTests(endpoint: Endpoint, { path, as }: FullExample): void {
  const { gateway } = stack();
  async function reply(method: string, headers: Record<string, string>) {
    const response = await fetch(gateway + path, { method, headers, redirect: 'manual' });
    const { status } = response;
    if ([429, 500, 502, 503, 504].includes(status)) throw new Error(`${method} ${path} returned ${status}`);
    const kept = [...response.headers].filter(([name]) => !changing.includes(name));
    const text = await response.text();
    return { status, headers: Object.fromEntries(kept), text: method === 'HEAD' ? text : '' };
  }
  if (endpoint.noHead) {
    test('returns 405 for HEAD, because GET changes state', async () => {
      const { status, headers } = await reply('HEAD', {});
      expect([status, headers['allow']]).toEqual([405, 'GET']);
    });
    return;
  }
  test('returns for HEAD the headers of GET, without a body', async () => {
    const headers = as ? { Authorization: `Bearer ${await tokenOf(gateway, as)}` } : {};
    // Some pages change between two requests, so compare until both replies match.
    await until('HEAD says the same as GET', async () => {
      const get = await reply('GET', headers);
      expect(await reply('HEAD', headers)).toEqual(get);
      return true;
    });
    if (endpoint.access !== 'public') expect((await reply('HEAD', {})).status).toBe(401);
  });
}

function bodyTests<E extends Endpoint>(endpoint: E, example: Example, { send }: Subject<E>): void {
  const { type = '', body } = encode(example, endpoint);
  const valid = body!;
  test.each([
    ['text', 'text/plain', {}],
    ['no type', '', {}],
    ['gzip', type, { 'Content-Encoding': 'gzip' }],
  ])('returns 415 for a body as %s', async (_, type, more) => {
    const { error } = await send({ body: valid, headers: { 'Content-Type': type, ...more } });
    expect(error?.error).toBe('unsupported_media_type');
  });
  test('returns 413 for a body over the limit', async () => {
    const filler = Buffer.alloc(endpoint.body!.maxBytes, ' ');
    const body = Buffer.concat([filler, Buffer.from(valid)]);
    expect((await send({ body })).error?.error).toBe('payload_too_large');
  });
}

function jsonTests<E extends Endpoint>(endpoint: E, example: Example, { send }: Subject<E>): void {
  const invalid = endpoint.invalidBody ?? 'validation_failed';
  const valid = JSON.stringify(example.body);
  test('returns 400 for malformed JSON', async () => {
    expect((await send({ body: `${valid} x` })).error?.error).toBe('malformed_json');
  });
  test('returns 413 for JSON that is both too deep and too large', async () => {
    const depth = Math.max(500_000, endpoint.body!.maxBytes);
    const nested = '['.repeat(depth) + ']'.repeat(depth);
    expect((await send({ body: nested })).error?.error).toBe('payload_too_large');
  });
  test.each([
    'null',
    '[]',
    '"text"',
    '12',
    '{"__proto__":{"admin":true}}',
    '['.repeat(5_000) + ']'.repeat(5_000),
  ])('refuses the body %.40s', async (body) => {
    expect((await send({ body })).error?.error).toBe(invalid);
  });
}

function formTests<E extends Endpoint>({ send }: Subject<E>): void {
  test.each([
    ['no boundary', 'multipart/form-data', 'x'],
    ['no form', 'multipart/form-data; boundary=x', 'x'],
    [
      'no end',
      'multipart/form-data; boundary=x',
      '--x\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\nx',
    ],
    ['no headers', 'multipart/form-data; boundary=x', '--x\r\nx\r\n--x--\r\n'],
  ])('returns 400 for a form with %s', async (_, type, body) => {
    const { error } = await send({ body, headers: { 'Content-Type': type } });
    expect(error?.error).toBe('malformed_request');
  });
}
