import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import express, { type Request, type Response } from 'express';
import type { BodyKind, Endpoint, ErrorEnvelope, RequestBody } from '@content-platform/contract';
import { mediaTypes } from '@content-platform/contract/endpoint';
import { HttpError, invalidFields } from './http-error.ts';

/** Returns whether the request has a body (RFC 9112 §6.3). */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Throws for other charsets and malformed UTF-8: the parsers would replace bytes by U+FFFD. */
function checkCharset(_request: unknown, _response: unknown, body: Buffer, charset: string): void {
  if (charset === 'utf-8' && isUtf8(body)) return;
  throw Object.assign(new Error('not UTF-8'), { type: 'charset.unsupported' });
}

export function bodyTooLarge(maxBytes: number): HttpError<'payload_too_large'> {
  return new HttpError('payload_too_large', `The body is larger than ${maxBytes} bytes.`);
}

/** Returns the kind of a body by its headers. Throws 415 for a kind or encoding that is not accepted, and 413. */
export function checkBodyHeaders({ headers }: IncomingMessage, { kinds, maxBytes }: RequestBody): BodyKind {
  if ((headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') {
    throw new HttpError('unsupported_media_type', 'The body must not be compressed or encoded.');
  }
  const type = (headers['content-type'] ?? '').split(';')[0]!.trim().toLowerCase();
  const kind = kinds.find((each) => mediaTypes[each] === type);
  if (!kind) {
    const allowed = kinds.map((each) => mediaTypes[each]).join(' or ');
    throw new HttpError('unsupported_media_type', `The body must be ${allowed}.`);
  }
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw bodyTooLarge(maxBytes);
  return kind;
}

type BodyParser = (request: Request, response: Response) => Promise<void>;

/**
 * Returns a function that parses the body, unless it is multipart. It throws 413, 415 for a media type, encoding or
 * charset that is not accepted, and 400 for malformed JSON or a body that the contract does not have.
 */
export function createBodyParser({ body }: Endpoint): BodyParser {
  // checkBodyHeaders has checked the content type and the encoding.
  const options = { limit: body?.maxBytes ?? 0, inflate: false, type: () => true, verify: checkCharset };
  const parsers = {
    json: promisify(express.json({ ...options, strict: false })),
    form: promisify(express.urlencoded({ ...options, extended: false, parameterLimit: 100 })),
    multipart: async () => undefined,
  };

  return async (request, response) => {
    if (!hasBody(request)) return;
    if (!body) throw new HttpError('malformed_request', 'The endpoint accepts no body.');
    await parsers[checkBodyHeaders(request, body)](request, response);
  };
}

/**
 * Ends a written reply whose request's body still arrives, which is discarded for `drainMs` at most. Closing the
 * connection at once would reset it, and the client would lose the reply (RFC 9112 §9.6).
 */
export function endAfterBody(request: IncomingMessage, response: ServerResponse, drainMs: number): void {
  const end = () => response.end();
  const timer = setTimeout(end, drainMs);
  request.once('close', () => {
    clearTimeout(timer);
    end();
  });
  request.unpipe().resume();
}

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
    details.push({ path, message: issue.message.slice(0, 200).toWellFormed() });
  }
  return undefined;
}

/**
 * Returns params, query and body as the contract's schemas parse them; a multipart body is the request itself. Throws
 * 422 `validation_failed` with a detail for each field, or the endpoint's `invalidBody`.
 */
export function validate(endpoint: Endpoint, request: Request) {
  const details: Details = [];
  const params = check(endpoint.params, { ...request.params }, 'path', details) ?? {};
  // express parses the query with each access.
  const sentQuery = { ...request.query };
  const query = check(endpoint.query, sentQuery, 'query', details) ?? {};
  if (!endpoint.query && Object.keys(sentQuery).length > 0) {
    details.push({ path: 'query', message: 'The endpoint accepts no query parameters.' });
  }
  if (details.length > 0) throw invalidFields(details);
  if (endpoint.body?.kinds[0] === 'multipart' && hasBody(request)) return { params, query, body: request };
  const given = request.body as unknown;
  // express parses a form to an object without a prototype, which zod refuses.
  const plain = given && Object.getPrototypeOf(given) === null ? { ...given } : given;
  const absent = given === undefined && endpoint.body?.optional;
  const body = absent ? undefined : check(endpoint.body?.schema, plain, 'body', details);
  if (details.length === 0) return { params, query, body };
  throw invalidFields(details, endpoint.invalidBody);
}

/** Returns a strong ETag: a hash, because a record that is created 30 days after its deletion repeats versions. */
export const etagOf = (payload: string | Buffer): string => `"${hash('sha256', payload, 'base64url')}"`;

const etagPattern = /(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g;

/** Returns whether If-None-Match, a list or `*`, contains `etag` (RFC 9110 §13.1.2: weak comparison, ignores W/). */
export function matchesIfNoneMatch(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  return (ifNoneMatch.match(etagPattern) ?? []).some((name) => name.replace('W/', '') === etag);
}

/**
 * Whether If-Match, a list or `*`, allows a change. True without the header. Ignores W/, unlike RFC 9110 §13.1.1: no
 * service sends a weak ETag, but CDNs and proxies that compress replies add W/ to a strong one.
 */
export const matchesIfMatch = (ifMatch: string | undefined, etag: string): boolean =>
  ifMatch === undefined || matchesIfNoneMatch(ifMatch, etag);
