import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import busboy from 'busboy';
import { HttpError, invalidFields } from '@content-platform/chassis';
import { maxUploadBytes } from '@content-platform/contract';

export interface ReceivedFile {
  /** SHA-256. */
  checksum: Buffer;
  bytes: number;
  /** The name that the client sent. */
  name: string | undefined;
}

function malformed(cause: unknown): HttpError {
  const message = 'The body is not well-formed multipart/form-data.';
  return new HttpError('malformed_request', message, { cause });
}

const invalid = (message: string) => invalidFields([{ path: 'body.file', message }]);

function createParser({ headers }: IncomingMessage): busboy.Busboy {
  try {
    return busboy({ headers, defParamCharset: 'utf8', limits: { files: 1, fields: 0, headerPairs: 20 } });
  } catch (error) {
    throw malformed(error);
  }
}

async function save(file: Readable, path: string): Promise<Omit<ReceivedFile, 'name'>> {
  const hash = createHash('sha256');
  let bytes = 0;
  async function* counted(source: AsyncIterable<Buffer>) {
    for await (const chunk of source) {
      bytes += chunk.length;
      if (bytes > maxUploadBytes) {
        throw new HttpError('payload_too_large', `The file is larger than ${maxUploadBytes} bytes.`);
      }
      hash.update(chunk);
      yield chunk;
    }
  }
  await pipeline(file, counted, createWriteStream(path, { flags: 'wx', mode: 0o600 }));
  if (bytes === 0) throw invalid('The file is empty.');
  return { checksum: hash.digest(), bytes };
}

/** Streams the only file of a form, the field `file`, to `path`. At the first error it stops and throws 400, 413 or 422. */
export async function receiveFile(request: IncomingMessage, path: string): Promise<ReceivedFile> {
  // The client has already disconnected, so no event would follow.
  if (request.destroyed) throw malformed(new Error('the connection closed before the end of the body'));
  const parser = createParser(request);
  const { promise, resolve, reject } = Promise.withResolvers<ReceivedFile>();
  let saving: Promise<ReceivedFile> | undefined;

  parser.on('file', (field, file, { filename: name }) => {
    // If the form is refused, the parser ends the file with an error that no longer matters.
    file.on('error', () => undefined);
    if (field !== 'file') {
      file.resume();
      return reject(invalid('The field of the file must be named file.'));
    }
    saving = save(file, path).then((saved) => ({ ...saved, name }));
    saving.catch(reject);
  });
  parser.once('fieldsLimit', () => reject(invalid('There must be no other field.')));
  parser.once('filesLimit', () => reject(invalid('There must be one file.')));
  parser.on('error', (error) => reject(malformed(error)));
  parser.once('close', () => (saving ? resolve(saving) : reject(invalid('There is no file.'))));
  request.once('error', (error) => reject(malformed(error)));

  request.pipe(parser);
  try {
    return await promise;
  } finally {
    request.unpipe(parser);
    parser.destroy();
    // Waits, because the last write could create the file again after its removal.
    await saving?.catch(() => undefined);
  }
}
