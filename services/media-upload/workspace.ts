import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Older than any upload that is under way. */
const abandonedMs = 10 * 60_000;

/** Room for uploads that are under way. */
export interface Workspace {
  /** Does `work` with a folder of its own, which is gone afterwards. */
  use<T>(work: (folder: string) => Promise<T>): Promise<T>;
  /** Removes what a crash has left. */
  tidy(): Promise<void>;
}

/** @param root made when it is missing; other processes may use it, too */
export async function createWorkspace(root: string): Promise<Workspace> {
  await mkdir(root, { recursive: true, mode: 0o700 });

  return {
    async use(work) {
      const folder = join(root, randomUUID());
      await mkdir(folder, { mode: 0o700 });
      try {
        return await work(folder);
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    },
    async tidy() {
      for (const name of await readdir(root)) {
        const folder = join(root, name);
        const since = await stat(folder).then(
          ({ mtimeMs }) => mtimeMs,
          () => Date.now(),
        );
        if (Date.now() - since > abandonedMs) await rm(folder, { recursive: true, force: true });
      }
    },
  };
}
