import { describe, expect, test } from '@jest/globals';
import { errorsOf, type Endpoint, type ErrorCode } from '@content-platform/contract';
import { call, checkError, isError, type Answer, type CallOptions } from '@content-platform/contract/client';
import { stack } from '../support/stack.ts';
import { tokenOf, type Account } from '../support/accounts.ts';
import { formOf } from '../support/form.ts';
import { sendRaw, statusOf } from '../support/raw-http.ts';
import { until } from '../support/wait.ts';

/** Errors that need a service to be away or many requests; they have their tests in test/faults and in the gateway. */
const elsewhere: readonly ErrorCode[] = [
  'internal_error',
  'bad_gateway',
  'service_unavailable',
  'gateway_timeout',
  'overloaded',
  'cache_unavailable',
  'identity_unavailable',
  'rate_limited',
  'image_too_costly',
];

export interface Subject<E extends Endpoint> {
  /** Calls the endpoint through the gateway, or the one `at` an address; the reply is checked against the contract. */
  ask(options?: CallOptions<E> & { as?: Account; at?: string }): Promise<Answer<E>>;
  /** Sends what the typed client would not: any path and any body. */
  send(options: {
    path?: string;
    body?: string | Uint8Array<ArrayBuffer>;
    headers?: Record<string, string>;
    as?: Account;
  }): Promise<Answer<E>>;
}

export interface Example {
  /** A path with its parameters filled in. */
  path: string;
  /** Who may call it. */
  as?: Account;
  /** A body that is accepted; needed where the contract has one. Of a form: the bytes of its file. */
  body?: Record<string, unknown> | Uint8Array<ArrayBuffer>;
  /** What the contract refuses with 422 validation_failed. */
  invalid?: Invalid;
  /** The path names a record that does not exist. */
  isMissing?: boolean;
}

interface Invalid {
  /** Fields that are changed in the example's body; undefined leaves a field out. */
  fields?: readonly Record<string, unknown>[];
  /** Whole bodies. */
  bodies?: readonly Record<string, unknown>[];
  /** Queries without the question mark. */
  queries?: readonly string[];
  paths?: readonly string[];
}

const takesJson = ({ body }: Endpoint) => body?.kinds.includes('json') ?? false;

/** The body as it is sent, and its type. */
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
 * The tests of one endpoint, through the gateway. What follows from the contract alone (tokens, scopes, kinds and sizes
 * of bodies, targets, methods) is tested here for every endpoint in the same way; `tests` adds what it does. At the
 * end each documented answer must have been seen.
 */
export function describeEndpoint<E extends Endpoint>(
  endpoint: E,
  example: Example,
  tests: (subject: Subject<E>) => void,
): void {
  const { gateway } = stack();
  const seen = new Set<string>();

  function note(answer: Answer<E>): Answer<E> {
    seen.add(answer.error ? answer.error.error : String(answer.status));
    return answer;
  }
  const bearer = async (as: Account | undefined) =>
    as ? { Authorization: `Bearer ${await tokenOf(gateway, as)}` } : {};
  const { type, body } = encode(example, endpoint);
  const withType: Record<string, string> = type === undefined ? {} : { 'Content-Type': type };

  const subject: Subject<E> = {
    async ask({ as = example.as, at = gateway, ...options } = {}) {
      const token = options.token ?? (as ? await tokenOf(at, as) : undefined);
      return note(await call(at, endpoint, { ...(options as CallOptions<E>), token }));
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
    if (endpoint.access !== 'public') protectedTests(endpoint, example, subject);
    if (endpoint.body) {
      bodyTests(endpoint, example, subject);
      if (endpoint.body.kinds[0] === 'multipart') formTests(subject);
      if (takesJson(endpoint)) jsonTests(endpoint, example, subject);
    } else {
      test('a body is refused', async () => {
        const { hostname, port } = new URL(gateway);
        const head = Object.entries({
          Host: `${hostname}:${port}`,
          'Content-Length': '2',
          ...(await bearer(example.as)),
        });
        const lines = head.map(([name, value]) => `${name}: ${value}\r\n`).join('');
        const raw = await sendRaw(gateway, `${endpoint.method} ${example.path} HTTP/1.1\r\n${lines}\r\n{}`);
        expect(statusOf(raw)).toBe(400);
        expect(raw).toContain('"error":"malformed_request"');
        seen.add('malformed_request');
      });
    }
    if (endpoint.method === 'GET') headTests(endpoint, example);
    test('an ambiguous target is refused', async () => {
      const { error } = await subject.send({ path: `${example.path}?x=%00`, ...(body ? { body } : {}) });
      expect(error?.error).toBe('malformed_target');
    });
    if (endpoint.service !== 'gateway') {
      test('a query parameter that is not in the contract is refused', async () => {
        const { error } = await subject.send({
          path: `${example.path}?surprise=1`,
          ...(body ? { body } : {}),
        });
        expect(error?.error).toBe('validation_failed');
      });
    }
    invalidTests(endpoint, example, subject);
    if (example.isMissing) {
      test('what does not exist: 404', async () => {
        expect((await subject.send(body ? { body } : {})).error?.error).toBe('not_found');
      });
    }
    tests(subject);
    test('every documented answer was seen', () => {
      const documented = [...Object.keys(endpoint.responses), ...errorsOf(endpoint)];
      const missing = documented.filter(
        // A page that says that something is away has its test elsewhere, too.
        (answer) => !seen.has(answer) && !elsewhere.includes(answer as ErrorCode) && !(Number(answer) >= 500),
      );
      expect(missing).toEqual([]);
    });
  });
}

/** What every list and every id refuses: services/contract/schemas.test.ts has more of each. */
const badPages = ['limit=0', 'limit=101', 'cursor=!'];
const badIds = ['0', 'x', '9007199254740992'];

function invalidTests<E extends Endpoint>(endpoint: E, example: Example, { send }: Subject<E>): void {
  const { path, body, invalid: { fields = [], bodies = [], queries = [], paths = [] } = {} } = example;
  const wrongBodies = [...fields.map((wrong) => ({ ...body, ...wrong })), ...bodies];
  const hasPages = Object.hasOwn(endpoint.query?.shape ?? {}, 'limit');
  const hasId = /\/:id(\/|$)/.test(endpoint.path) && !endpoint.cookies;
  const wrongPaths = [
    ...[...queries, ...(hasPages ? badPages : [])].map((query) => `${path}?${query}`),
    ...(hasId ? badIds : []).map((id) => path.replace(/\/\d+(?=\/|$)/, `/${id}`)),
    ...paths,
  ];
  const valid = encode(example, endpoint).body;
  const requests = [
    ...wrongBodies.map((wrong) => [JSON.stringify(wrong), { body: JSON.stringify(wrong) }] as const),
    ...wrongPaths.map((wrong) => [wrong, { path: wrong, ...(valid && { body: valid }) }] as const),
  ];
  if (requests.length === 0) return;
  test.each(requests)('%.80s: 422', async (_, request) => {
    expect((await send(request)).error?.error).toBe('validation_failed');
  });
}

function protectedTests<E extends Endpoint>(endpoint: E, example: Example, { send }: Subject<E>): void {
  const body = example.body ? { body: encode(example, endpoint).body! } : {};
  const path = example.path;
  test('without a token: 401', async () => {
    const response = await fetch(stack().gateway + path, { method: endpoint.method });
    expect(response.headers.get('www-authenticate')).toMatch(/^Bearer/);
    expect(checkError(endpoint, response.status, await response.json()).error).toBe('token_required');
    const answer = await send({ ...body, headers: { Authorization: 'Basic eDp5' } });
    expect(answer.error?.error).toBe('token_required');
  });
  test('with a token that is not ours: 401', async () => {
    const { error } = await send({ ...body, headers: { Authorization: 'Bearer a.b.c' } });
    expect(error?.error).toBe('invalid_token');
  });
  if (!endpoint.beforePasswordChange) {
    test('before a temporary password is changed: 403', async () => {
      const { error } = await send({ ...body, as: 'temporary' });
      expect(error?.error).toBe('password_change_required');
    });
  }
  const outsider: Account | undefined =
    endpoint.access === 'user' ? 'machine' : endpoint.access === 'token' ? undefined : 'user';
  if (outsider) {
    test(`with the token of ${outsider}: 403`, async () => {
      const { error } = await send({ ...body, as: outsider });
      expect(error?.error).toBe('insufficient_scope');
    });
  }
}

/** Headers that differ from one reply to the next, and those of the connection: fetch ends it after HEAD. */
const changing = ['connection', 'keep-alive', 'date', 'server-timing', 'x-cache', 'x-request-id'];

function headTests(endpoint: Endpoint, { path, as }: Example): void {
  const { gateway } = stack();
  async function reply(method: string, headers: Record<string, string>) {
    const response = await fetch(gateway + path, { method, headers, redirect: 'manual' });
    const { status } = response;
    const kept = [...response.headers].filter(([name]) => !changing.includes(name));
    const text = await response.text();
    return { status, headers: Object.fromEntries(kept), text: method === 'HEAD' ? text : '' };
  }
  if (endpoint.noHead) {
    test('HEAD: 405, for GET changes something', async () => {
      const { status, headers } = await reply('HEAD', {});
      expect([status, headers['allow']]).toEqual([405, 'GET']);
    });
    return;
  }
  test('HEAD: as GET, without the body', async () => {
    const headers = as ? { Authorization: `Bearer ${await tokenOf(gateway, as)}` } : {};
    // What some pages say changes from one moment to the next.
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
  ])('a body as %s: 415', async (_, type, more) => {
    const { error } = await send({ body: valid, headers: { 'Content-Type': type, ...more } });
    expect(error?.error).toBe('unsupported_media_type');
  });
  test('too large: 413', async () => {
    const filler = Buffer.alloc(endpoint.body!.maxBytes, ' ');
    const body = Buffer.concat([filler, Buffer.from(valid)]);
    expect((await send({ body })).error?.error).toBe('payload_too_large');
  });
}

function jsonTests<E extends Endpoint>(endpoint: E, example: Example, { send }: Subject<E>): void {
  const invalid = endpoint.invalidBody ?? 'validation_failed';
  const valid = JSON.stringify(example.body);
  test('malformed JSON: 400', async () => {
    expect((await send({ body: `${valid} x` })).error?.error).toBe('malformed_json');
  });
  test('too deep, and too large: 413', async () => {
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
  ])('the body %.40s: refused', async (body) => {
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
  ])('%s: 400', async (_, type, body) => {
    const { error } = await send({ body, headers: { 'Content-Type': type } });
    expect(error?.error).toBe('malformed_request');
  });
}
