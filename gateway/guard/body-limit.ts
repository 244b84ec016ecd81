import { Transform, type Duplex } from 'node:stream';
import type { Request } from 'express';
import { bodyTooLarge, checkBodyHeaders, hasBody, HttpError } from '@content-platform/chassis';
import type { Middleware } from '../request-context.ts';

/** Reads the whole body. Rejects with 413 as soon as it is too large, and if the client disconnects. */
function readBody(request: Request, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', function count(chunk: Buffer) {
      bytes += chunk.length;
      if (bytes <= maxBytes) return void chunks.push(chunk);
      request.off('data', count);
      reject(bodyTooLarge(maxBytes));
    });
    request.once('end', () => resolve(Buffer.concat(chunks)));
    request.once('error', reject);
  });
}

/**
 * Counts a streamed body. It is destroyed with 413 or 400 (client disconnected); the request stays readable for a
 * reply.
 */
function countBody(request: Request, maxBytes: number): Duplex {
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

/**
 * Accepts the contract's kinds and sizes of body. Bodies are buffered, so that a slow client occupies no connection to
 * a service and no incomplete body reaches it. Uploads are streamed.
 */
export const limitBody: Middleware = async (request, { locals: context }, next) => {
  if (!hasBody(request)) return next();
  const { body } = context.endpoint!;
  if (!body) throw new HttpError('malformed_request', 'The endpoint accepts no body.');
  if (checkBodyHeaders(request, body) !== 'multipart') context.body = await readBody(request, body.maxBytes);
  else {
    context.bodyStream = countBody(request, body.maxBytes);
    request.once('end', () => (context.bodyEndedAt = performance.now()));
  }
  next();
};
