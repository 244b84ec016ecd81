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

/** The parsers take other charsets, too, and make U+FFFD of what is none: another text than that which was sent. */
function checkCharset(_request: unknown, _response: unknown, body: Buffer, charset: string): void {
  if (charset === 'utf-8' && isUtf8(body)) return;
  throw Object.assign(new Error('not UTF-8'), { type: 'charset.unsupported' });
}

function parsersOf(endpoint: Endpoint, limit: number) {
  let made = parsers.get(endpoint);
  if (!made) {
    // The content type was checked already, so each takes what it is given. Compressed bodies answer 415.
    const options = { limit, inflate: false, type: () => true, verify: checkCharset };
    made = {
      json: express.json({ ...options, strict: false }),
      form: express.urlencoded({ ...options, extended: false, parameterLimit: 100 }),
    };
    parsers.set(endpoint, made);
  }
  return made;
}

/** Whether a body comes with the request (RFC 9112 §6.3). */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** A multipart body is its handler's to read, and to stop reading when it is longer than it may be. */
function checkStream({ headers }: IncomingMessage, maxBytes: number): void {
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') {
    throw new HttpError(415, 'unsupported_media_type', 'The body must not be compressed or encoded.');
  }
  if (Number(headers['content-length'] ?? 0) > maxBytes) {
    throw new HttpError(413, 'payload_too_large', 'The body is too large.');
  }
}

/**
 * Reads the body into request.body when the contract has one; a multipart one is left to the handler. Throws 413 when it
 * is too large, or says so, or there should be none, 415 for a kind, encoding or charset that is not taken, 400 for
 * malformed JSON.
 */
export async function parseBody(request: Request, response: Response, endpoint: Endpoint): Promise<void> {
  if (!hasBody(request)) return;
  if (!endpoint.body) throw new HttpError(413, 'payload_too_large', 'This endpoint takes no body.');
  const type = (request.headers['content-type'] ?? '').split(';')[0]!.trim().toLowerCase();
  const kind = kinds[type as keyof typeof kinds];
  if (!kind || !endpoint.body.kinds.includes(kind)) {
    const names = Object.entries(kinds).filter(([, name]) => endpoint.body!.kinds.includes(name));
    const allowed = names.map(([name]) => name).join(' or ');
    throw new HttpError(415, 'unsupported_media_type', `The body must be ${allowed}.`);
  }
  if (kind === 'multipart') return checkStream(request, endpoint.body.maxBytes);
  const parse = parsersOf(endpoint, endpoint.body.maxBytes)[kind];
  await new Promise<void>((resolve, reject) => {
    parse(request, response, (error?: unknown) => (error ? reject(error as Error) : resolve()));
  });
}
