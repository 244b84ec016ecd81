import {
  createSemaphore,
  type Release,
  type Handler,
  HttpError,
  type Idempotency,
  settleAll,
  singleFlight,
  unavailable,
} from '@content-platform/chassis';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { imageVariants, upload as contract } from '@content-platform/contract';
import { cleanName } from '../file-name.ts';
import type { File, NewFile } from '../file-store.ts';
import { keyOf, keysOf, mediaFile, namesOf } from '../media-file.ts';
import type { UploadMetrics, UploadOutcome } from '../metrics.ts';
import type { Outcome, Refusal } from '../processing/job.ts';
import type { Pool } from '../processing/pool.ts';
import { receiveFile, type ReceivedFile } from '../receive-file.ts';
import type { Workspace } from '../workspace.ts';
import type { MediaDeps } from './media.ts';

/** Returns a function that takes one of `max` slots for a user, who may hold `maxPerUser`; undefined: none is free. */
function perUserLimit(max: number, maxPerUser: number): (userId: number) => Release | undefined {
  const all = createSemaphore(max);
  const held = new Map<number, number>();

  return (userId) => {
    const own = held.get(userId) ?? 0;
    const release = own < maxPerUser ? all.tryAcquire() : undefined;
    if (!release) return undefined;
    held.set(userId, own + 1);
    return () => {
      release();
      const left = held.get(userId)! - 1;
      if (left > 0) held.set(userId, left);
      else held.delete(userId);
    };
  };
}

export interface UploadDeps extends MediaDeps {
  pool: Pool;
  workspace: Workspace;
  idempotency: Idempotency;
  uploadMetrics: UploadMetrics;
}

/** Maximum number of concurrent uploads. Each may keep a file on the disk for as long as its client is slow. */
const maxUploads = 64;
/** So that one user cannot take all slots. The job queue has room for them: see `maxWaitingPerWorker` in start.ts. */
const maxUploadsPerUser = 8;

const refusals: Record<Refusal, string> = {
  unsupported_media_type: 'The file is not a JPEG, PNG, WebP, AVIF, GIF or PDF.',
  animated_image: 'The image has more than one frame. Upload a still image.',
  image_too_large: 'The image has over 24 megapixels (12 at 16 bits) or a side over 16,383 pixels.',
  image_too_costly: 'Processing the image takes over 20 seconds or too much memory. Reduce its size.',
  unreadable_file: 'The file is damaged. Upload an intact copy.',
};

type Processed = Exclude<Outcome, { kind: 'refused' | 'failed' }>;

/** Errors of the machine, which would fail any other upload, too. libvips reports them only in its messages. */
const machineFailure =
  /\b(?:ENOSPC|EDQUOT|EROFS|EIO|ESTALE|EMFILE|ENFILE|ENOMEM)\b|No space left on device|Disk quota exceeded|Read-only file system|Input\/output error|Stale file handle|Too many open files|Cannot allocate memory/i;

function translate(error: unknown): unknown {
  if (error instanceof HttpError || !machineFailure.test(String(error))) return error;
  return unavailable('Files cannot be stored now. Retry later.', error);
}

/** Throws the error for the client if the file was refused. */
function accepted(outcome: Outcome): Processed {
  if (outcome.kind === 'refused') throw new HttpError(outcome.refusal, refusals[outcome.refusal]);
  if (outcome.kind === 'failed') throw new Error(outcome.message);
  // An image that exploits its decoder controls the outcome, and each name becomes a path.
  if (outcome.kind === 'image' && !outcome.variants.every(({ name }) => Object.hasOwn(imageVariants, name)))
    throw new Error('A worker process returned a variant with a wrong name.');
  return outcome;
}

function newFile(userId: number, { checksum, bytes, name }: ReceivedFile, outcome: Processed): NewFile {
  const noSize = { width: null, height: null };
  const { width, height, placeholder, variants } =
    outcome.kind === 'image'
      ? outcome
      : { ...noSize, placeholder: null, variants: [{ name: 'original' as const, ...noSize, bytes }] };
  return {
    userId,
    object: randomUUID(),
    checksum,
    bytes,
    mime: outcome.mime,
    name: cleanName(name),
    width,
    height,
    placeholder,
    variants: variants.map(({ name, width, height, bytes }) => ({ name, width, height, bytes })),
  };
}

export function upload(deps: UploadDeps): Handler<typeof contract> {
  const { files, store, pool, workspace, idempotency, uploadMetrics, publicUrl } = deps;
  const admit = perUserLimit(maxUploads, maxUploadsPerUser);
  const shareUpload = singleFlight<{ kept: File; isNew: boolean }>();

  /** Puts the upload and all its variants into the store, or none of them. */
  async function putAll(file: NewFile, folder: string): Promise<void> {
    const puts = namesOf(file).map((name) => store.put(keyOf(file.object, name), join(folder, name)));
    await settleAll(puts).catch(async (error: unknown) => {
      await removeAll(file);
      throw error;
    });
  }

  /** Removes the files. Those that cannot be removed now stay pending. */
  async function removeAll(file: NewFile): Promise<void> {
    await Promise.allSettled(keysOf(file).map((key) => store.remove(key)));
  }

  /** Stores the files before the row. After a crash, or if it is unknown whether the row was added, they stay pending. */
  async function storeFile(userId: number, received: ReceivedFile, folder: string, outcome: Processed) {
    const file = newFile(userId, received, outcome);
    await files.begin(file);
    await putAll(file, folder);
    const kept = await files.add(file).catch(async (error: unknown) => {
      if (error instanceof HttpError && error.status < 500) await removeAll(file);
      throw error;
    });
    const isNew = kept.object === file.object;
    if (!isNew) await removeAll(file);
    return { kept, isNew };
  }

  const receive: Handler<typeof contract> = ({ body, caller, header, signal }) =>
    workspace.use(async (folder) => {
      const path = join(folder, 'original');
      const received = await receiveFile(body, path);
      const fingerprint = received.checksum.toString('hex');
      const request = { endpoint: contract, caller, key: header('idempotency-key'), fingerprint };
      return idempotency.once(request, async () => {
        const { value, joined } = await shareUpload(`${caller.id} ${fingerprint}`, signal(), async () => {
          const known = await files.findUpload(caller.id, received.checksum);
          if (known) return { kept: known, isNew: false };
          await files.checkQuota(caller.id, received.bytes);
          const job = { path, folder, sides: imageVariants };
          const outcome = accepted(await pool.run(job, signal(), caller.id));
          return storeFile(caller.id, received, folder, outcome);
        });
        const status: 200 | 201 = value.isNew && !joined ? 201 : 200;
        return { status, body: mediaFile(publicUrl, value.kept) };
      });
    });

  return async (call) => {
    const count = (outcome: UploadOutcome) => uploadMetrics.uploads.inc({ outcome });
    const release = admit(call.caller.id);
    try {
      if (!release) throw unavailable('The server is overloaded. Retry later.');
      const answer = await receive(call);
      count(answer.status === 201 ? 'created' : 'existing');
      return answer;
    } catch (thrown) {
      const error = translate(thrown);
      count(outcomeOf(error, call.signal()));
      throw error;
    } finally {
      release?.();
    }
  };
}

function outcomeOf(error: unknown, signal: AbortSignal): UploadOutcome {
  if (signal.aborted) return 'hung_up';
  if (!(error instanceof HttpError)) return 'failed';
  return error.status < 500 ? 'refused' : error.status === 503 ? 'busy' : 'failed';
}
