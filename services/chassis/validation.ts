import type { Request } from 'express';
import type { Endpoint, ErrorEnvelope } from '@content-platform/contract';
import { hasBody } from './body.ts';
import { HttpError } from './http-error.ts';

type Schema = NonNullable<Endpoint['params'] | Endpoint['query']> | NonNullable<Endpoint['body']>['schema'];
type Details = NonNullable<ErrorEnvelope['details']>;

/** More than a person reads; a body may be wrong in thousands of places. */
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
 * What the contract's schemas make of the request: params, query, body; a multipart body is the request itself. Throws
 * 422 `validation_failed` with a line for each field, or what the endpoint's `invalidBody` says.
 */
export function validate(endpoint: Endpoint, request: Request) {
  const details: Details = [];
  const params = check(endpoint.params, { ...request.params }, 'path', details) ?? {};
  const query = check(endpoint.query, { ...request.query }, 'query', details) ?? {};
  if (!endpoint.query && Object.keys(request.query).length > 0) {
    details.push({ path: 'query', message: 'This endpoint takes no query parameters.' });
  }
  if (details.length > 0) throw new HttpError(422, 'validation_failed', 'The request is not valid.', details);
  // A form arrives without a prototype, which zod does not take for an object.
  const given = request.body as unknown;
  if (endpoint.body?.kinds[0] === 'multipart' && hasBody(request)) return { params, query, body: request };
  const plain = given && Object.getPrototypeOf(given) === null ? { ...given } : given;
  const absent = given === undefined && endpoint.body?.optional;
  const body = absent ? undefined : check(endpoint.body?.schema, plain, 'body', details);
  if (details.length === 0) return { params, query, body };
  if (endpoint.invalidBody)
    throw new HttpError(400, endpoint.invalidBody, 'The request is not valid.', details);
  throw new HttpError(422, 'validation_failed', 'The request is not valid.', details);
}
