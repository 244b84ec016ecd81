import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@content-platform/chassis';
import { imageVariants } from '@content-platform/contract';
import type { Job } from '../processing/job.ts';
import { createWorkspace } from '../workspace.ts';
import { createPool, type PoolOptions } from '../processing/pool.ts';

export type TestPool = Awaited<ReturnType<typeof createTestPool>>;

/** Creates a pool with its own folder. */
export async function createTestPool(options: Partial<PoolOptions> = {}) {
  const parent = await mkdtemp(join(tmpdir(), 'pool-'));
  const root = join(parent, 'jobs');
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
    /** Processes these bytes; the variants stay until the pool is closed. */
    process: async (bytes: Buffer, signal = new AbortController().signal) =>
      pool.run(await jobOf(bytes), signal),
    async close(): Promise<void> {
      await pool.close();
      await rm(parent, { recursive: true, force: true });
    },
  };
}
