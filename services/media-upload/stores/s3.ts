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
  /** Undefined: Amazon's in `region`. */
  endpoint: string | undefined;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
}

/** In ms, of each of two attempts, so that a client is told before the gateway gives up: until there is a connection, while nothing comes or goes, and for a reply. */
const timeouts = {
  connectionTimeout: 2_000,
  socketTimeout: 5_000,
  requestTimeout: 20_000,
  throwOnRequestTimeout: true,
};

/** What goes wrong is thrown, and logged by who catches it; on its own the SDK writes to the console. */
const silent = { debug() {}, info() {}, warn() {}, error() {} };

/**
 * What the server answers below 500 is a fault of ours; anything else means that it is away. Our key or the bucket may
 * have been changed: then it is away until somebody tells us.
 */
function translate(error: unknown): unknown {
  const status = error instanceof S3ServiceException ? (error.$metadata.httpStatusCode ?? 500) : 500;
  const { name, code } = error as NodeJS.ErrnoException;
  const isOurs = status < 500 && status !== 403 && name !== 'NoSuchBucket';
  // Not S3's: a file that cannot be read, and a client that has hung up.
  if (isOurs || code === 'ENOENT' || name === 'AbortError') return error;
  return unavailable('The file store does not answer at the moment.', error);
}

/** Files in a bucket of a server that speaks S3. The bucket must be there. Everything throws 503 while it is away. */
export function createS3Store(settings: S3Settings): Store {
  const { bucket: Bucket, endpoint, region, accessKeyId, secretAccessKey } = settings;
  const client = new S3Client({
    region,
    credentials: { accessKeyId, secretAccessKey },
    // Other servers than Amazon's are seldom reachable under a name for each bucket.
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    maxAttempts: 2,
    logger: silent,
    requestHandler: timeouts,
    // Not all of those servers know the checksums that Amazon added.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });

  async function answered<T>(work: Promise<T>): Promise<T> {
    return work.catch((error: unknown) => Promise.reject(translate(error)));
  }

  return {
    name: `s3:${Bucket}`,
    async put(Key, path) {
      const { size: ContentLength } = await stat(path);
      const Body = createReadStream(path);
      try {
        await answered(client.send(new PutObjectCommand({ Bucket, Key, Body, ContentLength })));
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
      await answered(client.send(new DeleteObjectCommand({ Bucket, Key })));
    },
    async *list() {
      let ContinuationToken: string | undefined;
      do {
        const next = ContinuationToken ? { ContinuationToken } : {};
        const page = await answered(client.send(new ListObjectsV2Command({ Bucket, ...next })));
        for (const { Key, LastModified } of page.Contents ?? []) {
          yield { key: Key!, ageMs: Date.now() - LastModified!.getTime() };
        }
        ContinuationToken = page.NextContinuationToken;
      } while (ContinuationToken !== undefined);
    },
    async check() {
      await answered(client.send(new HeadBucketCommand({ Bucket })));
    },
    close: () => client.destroy(),
  };
}
