import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';

/** A disk for one test that can be filled, or made read-only as the kernel does with a damaged disk. */
export interface SmallDisk {
  folder: string;
  /** Fills the remaining space in chunks, so that the process can do other work meanwhile. */
  fill(): Promise<void>;
  /** Frees that space. */
  free(): void;
  readOnly(yes: boolean): void;
  unmount(): void;
}

/**
 * Mounts a tmpfs at `folder`, which is created if missing. Needs root on Linux. A full disk occupies its size in
 * memory.
 */
export function mountSmallDisk(folder: string, megabytes: number): SmallDisk {
  mkdirSync(folder, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0755`, 'tmpfs', folder]);
  const ballast = join(folder, 'ballast');
  let isMounted = true;
  // Lazy: a process with open files there is about to end.
  const unmount = () => {
    if (isMounted) execFileSync('umount', ['--lazy', folder]);
    isMounted = false;
    process.removeListener('exit', unmount);
    process.removeListener('SIGTERM', end);
  };
  // SIGTERM does not trigger the exit event by itself.
  const end = () => process.exit(1);
  process.once('exit', unmount).once('SIGTERM', end);
  return {
    folder,
    async fill() {
      const file = await open(ballast, 'a');
      for (const bytes of [2 ** 20, 4_096, 1]) await writeUntilFull(file, Buffer.alloc(bytes, 1));
      await file.close();
    },
    free: () => rmSync(ballast, { force: true }),
    readOnly: (yes) => execFileSync('mount', ['-o', `remount,${yes ? 'ro' : 'rw'}`, folder]),
    unmount,
  };
}

async function writeUntilFull(file: FileHandle, piece: Buffer): Promise<void> {
  try {
    for (;;) await file.write(piece);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}
