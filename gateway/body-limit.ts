import { Transform, type Readable } from 'node:stream';
import type { Request } from 'express';
import { mediaTypes, type RequestBody } from '@content-platform/contract';
import { hasBody, HttpError } from '@content-platform/chassis';
import type { Step } from './exchange.ts';

function tooLarge(maxBytes: number): HttpError {
  return new HttpError(413, 'payload_too_large', `The body is larger than ${maxBytes} bytes.`);
}

/** Throws 413 or 415 for what the head says already. */
function checkHead({ headers }: Request, { kinds, maxBytes }: RequestBody): void {
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new HttpError(415, 'unsupported_media_type', 'The body must not be compressed.');
  }
  const type = (headers['content-type'] ?? '').split(';')[0]!.trim().toLowerCase();
  if (!kinds.some((kind) => mediaTypes[kind] === type)) {
    const allowed = kinds.map((kind) => mediaTypes[kind]).join(' or ');
    throw new HttpError(415, 'unsupported_media_type', `The body must be ${allowed}.`);
  }
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes);
}

/** Reads the whole body. Rejects with 413 as soon as it is too large, and when the client goes away. */
function readBody(request: Request, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', function count(chunk: Buffer) {
      bytes += chunk.length;
      if (bytes <= maxBytes) return void chunks.push(chunk);
      request.off('data', count);
      reject(tooLarge(maxBytes));
    });
    request.once('end', () => resolve(Buffer.concat(chunks)));
    request.once('error', reject);
  });
}

/**
 * The body as it comes. The stream that comes back is destroyed with 413 as soon as it is too large, and with 400 when
 * the client goes away; the request itself stays readable, so that it can be answered.
 */
function countBody(request: Request, maxBytes: number): Readable {
  let bytes = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      done(bytes > maxBytes ? tooLarge(maxBytes) : null, chunk);
    },
  });
  // Whoever takes the stream over listens; before that somebody may wait, and ask for `errored` then.
  counted.on('error', () => undefined);
  request.once('close', () => {
    if (!request.complete) counted.destroy(new HttpError(400, 'malformed_request', 'The body broke off.'));
  });
  return request.pipe(counted);
}

/**
 * Lets through the kind and size of body that the contract takes. The body is held until it is whole: what is too large
 * or breaks off never reaches a service, and a client that sends slowly keeps none of its connections. Files are not
 * held but counted on their way.
 */
export function limitBody(): Step {
  return async (request, response, next) => {
    const { locals: exchange } = response;
    const { body } = exchange.endpoint!;
    if (hasBody(request)) {
      if (!body) throw new HttpError(413, 'payload_too_large', 'This endpoint takes no body.');
      checkHead(request, body);
      if (body.kinds[0] === 'multipart') exchange.bodyStream = countBody(request, body.maxBytes);
      else exchange.body = await readBody(request, body.maxBytes);
    }
    next();
  };
}
