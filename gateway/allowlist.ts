import type { Endpoint } from '@content-platform/contract';
import { comparePaths, HttpError } from '@content-platform/chassis';
import type { Step } from './exchange.ts';

/** What is possible at one path, by method. */
export type Methods = ReadonlyMap<string, Endpoint>;

/** Finds what the contract has at a path; undefined: nothing. */
export type Allowlist = (path: string) => Methods | undefined;

function matches(template: string[], segments: string[]): boolean {
  return (
    template.length === segments.length &&
    template.every((part, index) =>
      part.startsWith(':') ? segments[index] !== '' : part === segments[index],
    )
  );
}

/**
 * Looks paths up exactly as they came: case and trailing slash count, nothing is decoded, `:name` is one segment that
 * is not empty. A path that is fixed in the contract is never taken for a parameter of another.
 */
export function createAllowlist(endpoints: readonly Endpoint[]): Allowlist {
  const byPath = Map.groupBy(endpoints, (endpoint) => endpoint.path as string);
  const templates = [...byPath].map(([path, group]) => ({
    path,
    segments: path.split('/'),
    methods: new Map(group.map((endpoint) => [endpoint.method as string, endpoint])),
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

/** Finds the endpoint, or throws 404, or 405 with what is possible. */
export function findEndpoint(allowlist: Allowlist): Step {
  return (request, response, next) => {
    const methods = allowlist(response.locals.path);
    if (!methods) throw new HttpError(404, 'not_found', 'There is nothing at this path.');
    const endpoint = methods.get(request.method);
    if (!endpoint) {
      const headers = { Allow: [...methods.keys()].join(', ') };
      throw new HttpError(405, 'method_not_allowed', `${request.method} is not possible here.`, undefined, {
        headers,
      });
    }
    response.locals.endpoint = endpoint;
    next();
  };
}
