import { open } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  NoSuchKey,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { unavailable } from '@content-platform/chassis';
import { readFlags, type Store } from './store.ts';

export interface S3Settings {
  bucket: string;
  /** Undefined: Amazon's endpoint in `region`. */
  endpoint: string | undefined;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
}

/** Timeouts of an attempt, in ms, shorter than those of the gateway. `put` makes one attempt, other calls up to two. */
const timeouts = {
  connectionTimeout: 2_000,
  socketTimeout: 5_000,
  requestTimeout: 20_000,
  throwOnRequestTimeout: true,
};

/** The longest pause in the reply of a file, in ms. */
const longestPauseMs = 60_000;

const unlimited = { maxSockets: Infinity };

/** Silences the SDK, which would log to the console; its errors are logged where they are caught. */
const silent = { debug() {}, info() {}, warn() {}, error() {} };

/**
 * Returns 503 for errors that mean that S3 is unavailable: 429, replies from 500 on, and a wrong key or a missing
 * bucket, because an operator may have changed them. Other replies below 500 are our fault and are returned unchanged.
 */
function translate(error: unknown): unknown {
  const status = error instanceof S3ServiceException ? (error.$metadata.httpStatusCode ?? 500) : 500;
  const { name, code } = error as NodeJS.ErrnoException;
  const isOurs = status < 500 && ![403, 429].includes(status) && name !== 'NoSuchBucket';
  // Not from S3: an unreadable local file, or a client that has disconnected.
  if (isOurs || code === 'ENOENT' || name === 'AbortError') return error;
  return unavailable('The file store is unavailable. Retry later.', error);
}

/** Stores files in an existing bucket of an S3-compatible server. All functions throw 503 while it is unavailable. */
export function createS3Store(settings: S3Settings): Store {
  const { bucket: Bucket, endpoint, region, accessKeyId, secretAccessKey } = settings;
  const client = new S3Client({
    region,
    credentials: { accessKeyId, secretAccessKey },
    // S3-compatible servers seldom have a host name for each bucket.
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    maxAttempts: 2,
    logger: silent,
    // The gateway limits requests. With a lower limit here, one user's slow downloads would keep other users waiting.
    requestHandler: { ...timeouts, httpAgent: unlimited, httpsAgent: unlimited },
    // Not all S3-compatible servers, and proxies before them, support `Expect: 100-continue` and Amazon's checksums.
    expectContinueHeader: false,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });

  const translated = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => Promise.reject(translate(error)));

  return {
    name: `s3:${Bucket}`,
    async put(Key, path) {
      const file = await open(path, readFlags);
      const Body = file.createReadStream();
      const { size: ContentLength } = await file.stat();
      const reading = new AbortController();
      // The SDK does not handle this error, so a failing disk would crash this process.
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
        const command = new GetObjectCommand({ Bucket, Key, Range });
        const { Body } = await client.send(command, signal ? { abortSignal: signal } : {});
        // Longer than `socketTimeout`, because a client that reads slowly pauses the reply of S3.
        (Body as IncomingMessage).socket.setTimeout(longestPauseMs);
        return Body as Readable;
      } catch (error) {
        if (error instanceof NoSuchKey) return undefined;
        throw translate(error);
      }
    },
    async remove(Key) {
      // Google Cloud Storage returns 404 for a missing file, unlike Amazon.
      await translated(client.send(new DeleteObjectCommand({ Bucket, Key }))).catch((error: unknown) => {
        if (!(error instanceof NoSuchKey)) throw error;
      });
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
      } while (ContinuationToken);
    },
    async check() {
      // Not HeadBucket: Google and Cloudflare refuse it to keys whose rights are limited to objects.
      (await this.get('check'))?.destroy();
    },
    close: () => client.destroy(),
  };
}
