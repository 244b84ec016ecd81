import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { allowTraversal } from './processing/decoder-user.ts';

/** Maximum age of an upload in progress. */
const abandonedMs = 10 * 60_000;

export type Workspace = Awaited<ReturnType<typeof createWorkspace>>;

/** Creates folders for uploads in `root`, which other processes may use, too. Tests replace `remove`. */
export async function createWorkspace(root: string, remove = rm) {
  await mkdir(root, { recursive: true, mode: 0o700 });
  await allowTraversal(root);

  return {
    /** Runs `work` with its own folder, which is removed afterwards. */
    async use<T>(work: (folder: string) => Promise<T>): Promise<T> {
      const folder = join(root, randomUUID());
      await mkdir(folder, { mode: 0o700 });
      try {
        return await work(folder);
      } finally {
        // The result of the work matters more; `removeAbandoned` tries again later.
        await remove(folder, { recursive: true, force: true }).catch(() => undefined);
      }
    },
    /** Removes folders that are older than ten minutes. Tries every folder, then throws the first error. */
    async removeAbandoned(): Promise<void> {
      const failures: unknown[] = [];
      for (const name of await readdir(root)) {
        const folder = join(root, name);
        const found = await stat(folder).catch(() => undefined);
        if (!found || Date.now() - found.mtimeMs <= abandonedMs) continue;
        await remove(folder, { recursive: true, force: true }).catch((error) => failures.push(error));
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}
