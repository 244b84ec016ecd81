import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { Transform, type Duplex } from 'node:stream';
import type { Endpoint } from '@content-platform/contract';
import helmet from 'helmet';
import {
  authorize,
  bearerToken,
  bodyTooLarge,
  checkBodyHeaders,
  comparePaths,
  createSemaphore,
  hasBody,
  HttpError,
  methodNotAllowed,
  requestMethods,
  type TokenVerifier,
  unavailable,
} from '@content-platform/chassis';
import { type GatewayRequest, onFinished, type RequestContext, type Step } from '../request-context.ts';
import type { RateLimits } from './rate-limit.ts';

type Methods = ReadonlyMap<string, Endpoint>;

export type Allowlist = (path: string) => Methods | undefined;

function matches(template: string[], segments: string[]): boolean {
  return (
    template.length === segments.length &&
    template.every((part, index) =>
      part.startsWith(':') ? segments[index] !== '' : part === segments[index],
    )
  );
}

/** Looks up paths exactly as sent; `:name` matches one segment that is not empty. Fixed paths precede templates. */
export function createAllowlist(endpoints: readonly Endpoint[]): Allowlist {
  const byPath = Map.groupBy(endpoints, (endpoint) => endpoint.path as string);
  const templates = [...byPath].map(([path, group]) => ({
    path,
    segments: path.split('/'),
    methods: new Map(
      group.flatMap((endpoint) => requestMethods(endpoint).map((method) => [method, endpoint])),
    ),
  }));
  const fixed = new Map(
    templates.filter(({ path }) => !path.includes('/:')).map(({ path, methods }) => [path, methods]),
  );
  const patterns = templates
    .filter(({ path }) => !fixed.has(path))
    .toSorted((a, b) => comparePaths(a.path, b.path));
  return (path) => {
    const known = fixed.get(path);
    if (known) return known;
    const segments = path.split('/');
    return patterns.find((pattern) => matches(pattern.segments, segments))?.methods;
  };
}

/** Returns helmet's security headers for browsers; HSTS, by default for a year, only if `publicUrl` is https. */
export function securityHeaders(publicUrl: string, includeSubDomains: boolean): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {};
  const recorder = {
    setHeader: (name: string, value: string) => void (headers[name.toLowerCase()] = value),
    removeHeader: () => undefined,
  } as unknown as ServerResponse;
  const set = helmet({
    // Replies of an API are data: a browser that shows a reply must load and run nothing. Pages set their own policy.
    contentSecurityPolicy: {
      useDefaults: false,
      directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
    },
    xFrameOptions: { action: 'deny' },
    strictTransportSecurity: publicUrl.startsWith('https:') && { includeSubDomains },
  });
  set({} as IncomingMessage, recorder, () => undefined);
  return headers;
}

const exposedHeaders = 'Content-Disposition, Content-Range, ETag, Retry-After, X-Cache, X-Request-Id';
const baseHeaders = ['Authorization', 'Content-Type', 'Traceparent', 'Tracestate', 'Baggage', 'X-Request-Id'];
const preflightSeconds = '600';

/** Returns the headers that let the request's page read the reply; undefined if its origin is not allowed. */
export type CorsHeaders = (request: IncomingMessage) => OutgoingHttpHeaders | undefined;

export function createCorsHeaders(origins: readonly string[]): CorsHeaders {
  const allowed = new Set(origins);
  return ({ headers: { origin } }) =>
    origin === undefined || !allowed.has(origin)
      ? undefined
      : { 'Access-Control-Allow-Origin': origin, 'Access-Control-Expose-Headers': exposedHeaders };
}

/** Lets pages of allowed origins call the API, and answers preflights. No credentials: tokens are in Authorization. */
export function cors(headersFor: CorsHeaders, allowlist: Allowlist): Step {
  return (request, response) => {
    const { replyHeaders, path } = response.locals;
    // Sent for every origin: a cache must not return a reply without CORS headers to an allowed origin.
    replyHeaders.vary = 'Origin';
    const headers = headersFor(request);
    if (!headers) return;
    Object.assign(replyHeaders, headers);
    const isPreflight =
      request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined;
    const methods = allowlist(path);
    if (!isPreflight || !methods) return;
    const endpointHeaders = [...methods.values()].flatMap(({ headers: asked = {} }) => Object.keys(asked));
    response.writeHead(204, {
      ...replyHeaders,
      'Access-Control-Allow-Methods': [...methods.keys()].join(', '),
      'Access-Control-Allow-Headers': [...new Set([...baseHeaders, ...endpointHeaders])].join(', '),
      'Access-Control-Max-Age': preflightSeconds,
    });
    response.end();
    return false;
  };
}

/** Finds the endpoint. Throws 404, or 405 with Allow. */
export function findEndpoint(allowlist: Allowlist): Step {
  return (request, response) => {
    const methods = allowlist(response.locals.path);
    if (!methods) throw new HttpError('not_found', 'The path was not found.');
    const endpoint = methods.get(request.method);
    if (!endpoint) throw methodNotAllowed(request.method, methods.keys());
    response.locals.endpoint = endpoint;
  };
}

/** Verifies the access token. Throws 401, 403 if it does not allow the request, 429 for many bad tokens of an address. */
export function authenticate(tokens: TokenVerifier, limits: RateLimits): Step {
  async function check(context: RequestContext, endpoint: Endpoint, header: string | undefined) {
    const token = bearerToken(header);
    context.caller = await tokens.verify(token).catch(async (error: unknown) => {
      if (error instanceof HttpError && error.status === 401) await limits.countBadToken(context);
      throw error;
    });
    authorize(context.caller, endpoint);
  }

  return ({ headers }, { locals: context }) => {
    const endpoint = context.endpoint!;
    return endpoint.access === 'public' ? undefined : check(context, endpoint, headers.authorization);
  };
}

/** Reads the whole body. Rejects with 413 as soon as it is too large, and if the client disconnects. */
function readBody(request: GatewayRequest, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // Not a list of chunks: a client may send chunks of one byte, which take 200 bytes each.
    let whole = Buffer.alloc(0);
    let bytes = 0;
    request.on('data', function add(chunk: Buffer) {
      const end = bytes + chunk.length;
      if (end > maxBytes) {
        request.off('data', add);
        return reject(bodyTooLarge(maxBytes));
      }
      if (end > whole.length) whole = Buffer.concat([whole], Math.min(maxBytes, 2 * end));
      whole.set(chunk, bytes);
      bytes = end;
    });
    request.once('end', () => resolve(whole.subarray(0, bytes)));
    request.once('error', reject);
  });
}

/**
 * Returns the body as a stream that fails with 413 if it is too large, and with 400 if the client disconnects. After a
 * 413 the request stays readable, so that the client gets the reply.
 */
function countBody(request: GatewayRequest, maxBytes: number): Duplex {
  let bytes = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      done(bytes > maxBytes ? bodyTooLarge(maxBytes) : null, chunk);
    },
  });
  // Prevents an unhandled error before the upstream attaches; the upstream checks `errored`.
  counted.on('error', () => undefined);
  request.once('close', () => {
    if (!request.complete)
      counted.destroy(
        new HttpError('malformed_request', 'The connection closed before the end of the body.'),
      );
  });
  return request.pipe(counted);
}

const largeBytes = 1_000_000;
/** Large bodies in memory: one caller may send 100 requests at a time, with 9 MB each. */
const maxLarge = 8;

/**
 * Creates the step that reads a body of the contract's kinds and sizes. Buffers it, so that a slow client occupies no
 * connection to a service and no incomplete body reaches it; throws 503 if many are large. Uploads are streamed.
 */
export function createBodyReader(): Step {
  const large = createSemaphore(maxLarge);

  return (request, response) => {
    const { locals: context } = response;
    if (!hasBody(request)) return;
    const { body } = context.endpoint!;
    if (!body) throw new HttpError('malformed_request', 'The endpoint accepts no body.');
    if (checkBodyHeaders(request, body) !== 'multipart') {
      // The client has disconnected, so no further event of the request would come.
      if (response.destroyed) return false;
      if (Math.min(body.maxBytes, Number(request.headers['content-length'] ?? Infinity)) > largeBytes) {
        const release = large.tryAcquire();
        if (!release) throw unavailable('Too many large bodies are being received. Retry later.');
        onFinished(response, release);
      }
      return readBody(request, body.maxBytes).then((whole) => void (context.body = whole));
    }
    context.bodyStream = countBody(request, body.maxBytes);
    request.once('end', () => (context.bodyEndedAt = performance.now()));
  };
}
