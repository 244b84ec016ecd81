import type { Request } from 'express';
import type { Endpoint, ErrorEnvelope } from '@content-platform/contract';
import { hasBody } from './body.ts';
import { HttpError } from './http-error.ts';

type Schema = NonNullable<Endpoint['params'] | Endpoint['query']> | NonNullable<Endpoint['body']>['schema'];
type Details = NonNullable<ErrorEnvelope['details']>;

/** Limit of the details in a reply; a body may have thousands of errors. */
const maxDetails = 20;

function check(schema: Schema | undefined, value: unknown, place: string, details: Details): unknown {
  if (!schema) return undefined;
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  for (const issue of result.error.issues.slice(0, maxDetails)) {
    const path = [place, ...issue.path.map(String)].join('.').slice(0, 200);
    details.push({ path, message: issue.message.slice(0, 200) });
  }
  return undefined;
}

/**
 * Validates params, query and body with the contract's schemas and returns the parsed values; a multipart body is the
 * request itself. Throws 422 `validation_failed` with a detail for each field, or the endpoint's `invalidBody`.
 */
export function validate(endpoint: Endpoint, request: Request) {
  const details: Details = [];
  const params = check(endpoint.params, { ...request.params }, 'path', details) ?? {};
  const query = check(endpoint.query, { ...request.query }, 'query', details) ?? {};
  if (!endpoint.query && Object.keys(request.query).length > 0) {
    details.push({ path: 'query', message: 'The endpoint accepts no query parameters.' });
  }
  if (details.length > 0) throw new HttpError('validation_failed', 'The request is not valid.', { details });
  // express parses a form to an object without a prototype, which zod refuses.
  const given = request.body as unknown;
  if (endpoint.body?.kinds[0] === 'multipart' && hasBody(request)) return { params, query, body: request };
  const plain = given && Object.getPrototypeOf(given) === null ? { ...given } : given;
  const absent = given === undefined && endpoint.body?.optional;
  const body = absent ? undefined : check(endpoint.body?.schema, plain, 'body', details);
  if (details.length === 0) return { params, query, body };
  throw new HttpError(endpoint.invalidBody ?? 'validation_failed', 'The request is not valid.', { details });
}
