import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  ListObjectsV2Command,
  NoSuchKey,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { unavailable } from '@content-platform/chassis';
import type { Store } from './store.ts';

export interface S3Settings {
  bucket: string;
  /** Undefined: Amazon's endpoint in `region`. */
  endpoint: string | undefined;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
}

/** In ms, for each of two attempts, so that the client gets an error before the gateway times out. */
const timeouts = {
  connectionTimeout: 2_000,
  socketTimeout: 5_000,
  requestTimeout: 20_000,
  throwOnRequestTimeout: true,
};

/** The SDK would log to the console; its errors are logged where they are caught. */
const silent = { debug() {}, info() {}, warn() {}, error() {} };

/**
 * Replies below 500 are our fault and stay as they are; anything else means that S3 is unavailable. So do a wrong key
 * and a missing bucket: somebody may have changed them.
 */
function translate(error: unknown): unknown {
  const status = error instanceof S3ServiceException ? (error.$metadata.httpStatusCode ?? 500) : 500;
  const { name, code } = error as NodeJS.ErrnoException;
  const isOurs = status < 500 && status !== 403 && name !== 'NoSuchBucket';
  // Not from S3: a local file that cannot be read, and a client that has disconnected.
  if (isOurs || code === 'ENOENT' || name === 'AbortError') return error;
  return unavailable('The file store does not answer at the moment.', error);
}

/** Files in an existing bucket of a server that speaks S3. Everything throws 503 while it is unavailable. */
export function createS3Store(settings: S3Settings): Store {
  const { bucket: Bucket, endpoint, region, accessKeyId, secretAccessKey } = settings;
  const client = new S3Client({
    region,
    credentials: { accessKeyId, secretAccessKey },
    // Servers other than Amazon's seldom have a host name for each bucket.
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    maxAttempts: 2,
    logger: silent,
    requestHandler: timeouts,
    // Not all of them know the checksums that Amazon has added.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });

  async function translated<T>(work: Promise<T>): Promise<T> {
    return work.catch((error: unknown) => Promise.reject(translate(error)));
  }

  return {
    name: `s3:${Bucket}`,
    async put(Key, path) {
      const { size: ContentLength } = await stat(path);
      const Body = createReadStream(path);
      const reading = new AbortController();
      // The SDK does not listen for this error: a disk that fails would end this process.
      Body.once('error', (error) => reading.abort(error));
      try {
        const command = new PutObjectCommand({ Bucket, Key, Body, ContentLength });
        await translated(client.send(command, { abortSignal: reading.signal }));
      } catch (error) {
        throw reading.signal.aborted ? reading.signal.reason : error;
      } finally {
        Body.destroy();
      }
    },
    async get(Key, range, signal) {
      const Range = range && `bytes=${range.start}-${range.end}`;
      try {
        const { Body } = await client.send(
          new GetObjectCommand({ Bucket, Key, ...(Range ? { Range } : {}) }),
          signal ? { abortSignal: signal } : {},
        );
        return Body as Readable;
      } catch (error) {
        if (error instanceof NoSuchKey) return undefined;
        throw translate(error);
      }
    },
    async remove(Key) {
      await translated(client.send(new DeleteObjectCommand({ Bucket, Key })));
    },
    async *list() {
      let ContinuationToken: string | undefined;
      do {
        const next = ContinuationToken ? { ContinuationToken } : {};
        const page = await translated(client.send(new ListObjectsV2Command({ Bucket, ...next })));
        for (const { Key, LastModified } of page.Contents ?? []) {
          yield { key: Key!, ageMs: Date.now() - LastModified!.getTime() };
        }
        ContinuationToken = page.NextContinuationToken;
      } while (ContinuationToken !== undefined);
    },
    async check() {
      await translated(client.send(new HeadBucketCommand({ Bucket })));
    },
    close: () => client.destroy(),
  };
}
