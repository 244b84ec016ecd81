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
} from '@aws-sdk/client-s3';
import type { Store } from './store.ts';

export interface S3Settings {
  bucket: string;
  /** Undefined: Amazon's in `region`. */
  endpoint: string | undefined;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
}

/** In ms, of each of three attempts: until there is a connection, while nothing comes or goes, and for a reply. */
const timeouts = {
  connectionTimeout: 2_000,
  socketTimeout: 5_000,
  requestTimeout: 20_000,
  throwOnRequestTimeout: true,
};

/** Files in a bucket of a server that speaks S3. The bucket must be there. */
export function createS3Store(settings: S3Settings): Store {
  const { bucket: Bucket, endpoint, region, accessKeyId, secretAccessKey } = settings;
  const client = new S3Client({
    region,
    credentials: { accessKeyId, secretAccessKey },
    // Other servers than Amazon's are seldom reachable under a name for each bucket.
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    requestHandler: timeouts,
    // Not all of those servers know the newer checksums; MD5 and SHA-256 of the signature are there anyway.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });

  return {
    async put(Key, path) {
      const { size: ContentLength } = await stat(path);
      const Body = createReadStream(path);
      try {
        await client.send(new PutObjectCommand({ Bucket, Key, Body, ContentLength }));
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
        throw error;
      }
    },
    async remove(Key) {
      await client.send(new DeleteObjectCommand({ Bucket, Key }));
    },
    async *list() {
      let ContinuationToken: string | undefined;
      do {
        const page = await client.send(
          new ListObjectsV2Command({ Bucket, ...(ContinuationToken ? { ContinuationToken } : {}) }),
        );
        for (const { Key, LastModified } of page.Contents ?? []) {
          yield { key: Key!, ageMs: Date.now() - LastModified!.getTime() };
        }
        ContinuationToken = page.NextContinuationToken;
      } while (ContinuationToken !== undefined);
    },
    async check() {
      await client.send(new HeadBucketCommand({ Bucket }));
    },
    close: () => client.destroy(),
  };
}
