import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@content-platform/chassis';
import { imageVariants } from '@content-platform/contract';
import type { Job, Outcome } from '../processing/job.ts';
import { createWorkspace } from '../workspace.ts';
import { createPool, type Pool, type PoolOptions } from '../processing/pool.ts';

export interface TestPool extends Pool {
  /** Processes these bytes; the variants stay until the pool is closed. */
  process(bytes: Buffer, signal?: AbortSignal, userId?: number): Promise<Outcome>;
  /** Makes a job whose upload is these bytes. */
  jobOf(bytes: Buffer): Promise<Job>;
  /** The log lines of the pool. */
  log: Record<string, unknown>[];
}

/** Creates a pool with its own folder. */
export async function createTestPool(options: Partial<PoolOptions> = {}): Promise<TestPool> {
  const parent = await mkdtemp(join(tmpdir(), 'pool-'));
  const root = join(parent, 'jobs');
  await createWorkspace(root);
  const log: Record<string, unknown>[] = [];
  const write = (line: string) => void log.push(JSON.parse(line) as Record<string, unknown>);
  const logger = createLogger('media-upload', 'info', { write });
  const pool = createPool({
    folder: root,
    size: 2,
    maxWaiting: 1_000,
    waitMs: 60_000,
    jobMs: 20_000,
    maxBytes: Infinity,
    logger,
    ...options,
  });

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
    process: async (bytes, signal = new AbortController().signal, userId) =>
      pool.run(await jobOf(bytes), signal, userId),
    async close() {
      await pool.close();
      await rm(parent, { recursive: true, force: true });
    },
  };
}
