import type { Endpoint } from '@content-platform/contract';
import {
  comparePaths,
  HttpError,
  requestMethods,
  authorize,
  bearerToken,
  type TokenVerifier,
} from '@content-platform/chassis';
import type { Middleware } from '../request-context.ts';
import type { RateLimits } from './rate-limit.ts';

/** The endpoints at one path, by method. */
type Methods = ReadonlyMap<string, Endpoint>;

/** Finds the endpoints at a path; undefined if there are none. */
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

/** Finds the endpoint. Throws 404, or 405 with Allow. */
export function findEndpoint(allowlist: Allowlist): Middleware {
  return (request, response, next) => {
    const methods = allowlist(response.locals.path);
    if (!methods) throw new HttpError('not_found', 'The path was not found.');
    const endpoint = methods.get(request.method);
    if (!endpoint) {
      const headers = { Allow: [...methods.keys()].join(', ') };
      throw new HttpError(
        'method_not_allowed',
        `The path does not support ${request.method}. Use a method in the Allow header.`,
        { headers },
      );
    }
    response.locals.endpoint = endpoint;
    next();
  };
}

/** Verifies the access token. Throws 401, 403 if it does not allow the request, 429 for many bad tokens of an address. */
export function authenticate(tokens: TokenVerifier, limits: RateLimits): Middleware {
  return async (request, response, next) => {
    const { locals: context } = response;
    const endpoint = context.endpoint!;
    if (endpoint.access === 'public') return next();
    const token = bearerToken(request.headers.authorization);
    context.caller = await tokens.verify(token).catch(async (error: unknown) => {
      if (error instanceof HttpError && error.status === 401) await limits.countBadToken(context);
      throw error;
    });
    authorize(context.caller, endpoint);
    next();
  };
}
