import { randomUUID } from 'node:crypto';
import { writeFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createLogger } from '@content-platform/chassis';
import { imageVariants } from '@content-platform/contract';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import type { Job } from '../processing/job.ts';
import { createWorkspace } from '../workspace.ts';
import { createPool, type PoolOptions } from '../processing/pool.ts';

export type TestPool = Awaited<ReturnType<typeof createTestPool>>;

/** Creates a pool with its own folder. */
export async function createTestPool(options: Partial<PoolOptions> = {}) {
  const root = join(temporaryFolder(), 'jobs');
  await createWorkspace(root);
  const log: Record<string, unknown>[] = [];
  const write = (line: string) => void log.push(JSON.parse(line) as Record<string, unknown>);
  const logger = createLogger('media-upload', 'info', { write });
  const pool = createPool({
    folder: root,
    size: 1,
    maxWaiting: 1_000,
    waitMs: 60_000,
    jobMs: 600_000,
    maxBytes: Infinity,
    logger,
    ...options,
  });

  /** Makes a job whose upload is these bytes. */
  async function jobOf(bytes: Buffer): Promise<Job> {
    const folder = join(root, randomUUID());
    await mkdir(folder);
    const path = join(folder, 'upload');
    await writeFile(path, bytes);
    return { path, folder, sides: imageVariants };
  }

  return {
    ...pool,
    log,
    jobOf,
    /** Processes these bytes; the variants stay until the tests of the file have ended. */
    process: async (bytes: Buffer, signal = new AbortController().signal) =>
      pool.run(await jobOf(bytes), signal),
  };
}
