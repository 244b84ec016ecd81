import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import express, { type Request, type Response } from 'express';
import type { Endpoint } from '@content-platform/contract';
import { HttpError } from './http-error.ts';

const kinds = {
  'application/json': 'json',
  'application/x-www-form-urlencoded': 'form',
  'multipart/form-data': 'multipart',
} as const;

type Parser = ReturnType<typeof express.json>;
const parsers = new Map<Endpoint, { json: Parser; form: Parser }>();

/** Refuses other charsets and malformed UTF-8, in which the parsers would replace bytes by U+FFFD. */
function checkCharset(_request: unknown, _response: unknown, body: Buffer, charset: string): void {
  if (charset === 'utf-8' && isUtf8(body)) return;
  throw Object.assign(new Error('not UTF-8'), { type: 'charset.unsupported' });
}

function parsersOf(endpoint: Endpoint, limit: number) {
  let made = parsers.get(endpoint);
  if (!made) {
    // parseBody has checked the content type. Compressed bodies are a 415.
    const options = { limit, inflate: false, type: () => true, verify: checkCharset };
    made = {
      json: express.json({ ...options, strict: false }),
      form: express.urlencoded({ ...options, extended: false, parameterLimit: 100 }),
    };
    parsers.set(endpoint, made);
  }
  return made;
}

/** Whether the request has a body (RFC 9112 §6.3). */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Checks the headers of a multipart body, which the handler reads and limits. */
function checkStream({ headers }: IncomingMessage, maxBytes: number): void {
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') {
    throw new HttpError('unsupported_media_type', 'The body must not be compressed or encoded.');
  }
  if (Number(headers['content-length'] ?? 0) > maxBytes) {
    throw new HttpError('payload_too_large', 'The body is too large.');
  }
}

/**
 * Parses the body into request.body if the contract has a body; the handler reads multipart bodies. Throws 413 if the body
 * is too large, 415 for a media type, encoding or charset that is not accepted, 400 for malformed JSON and for a body where
 * the contract has none.
 */
export async function parseBody(request: Request, response: Response, endpoint: Endpoint): Promise<void> {
  if (!hasBody(request)) return;
  if (!endpoint.body) throw new HttpError('malformed_request', 'This endpoint takes no body.');
  const type = (request.headers['content-type'] ?? '').split(';')[0]!.trim().toLowerCase();
  const kind = kinds[type as keyof typeof kinds];
  if (!kind || !endpoint.body.kinds.includes(kind)) {
    const names = Object.entries(kinds).filter(([, name]) => endpoint.body!.kinds.includes(name));
    const allowed = names.map(([name]) => name).join(' or ');
    throw new HttpError('unsupported_media_type', `The body must be ${allowed}.`);
  }
  if (kind === 'multipart') return checkStream(request, endpoint.body.maxBytes);
  const parse = parsersOf(endpoint, endpoint.body.maxBytes)[kind];
  await new Promise<void>((resolve, reject) => {
    parse(request, response, (error?: unknown) => (error ? reject(error as Error) : resolve()));
  });
}
