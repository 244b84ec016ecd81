import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';

/** Mounts a disk for one test at `folder`: a tmpfs, which occupies its size in memory when full. Needs root on Linux. */
export function mountSmallDisk(folder: string, megabytes: number) {
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
    /** Fills the remaining space in chunks, so that the process can do other work meanwhile. */
    async fill(): Promise<void> {
      const file = await open(ballast, 'a');
      for (const bytes of [2 ** 20, 4_096, 1]) await writeUntilFull(file, Buffer.alloc(bytes, 1));
      await file.close();
    },
    free: () => rmSync(ballast, { force: true }),
    /** Makes the disk read-only, as the kernel does with a damaged disk. */
    readOnly: (yes: boolean) => execFileSync('mount', ['-o', `remount,${yes ? 'ro' : 'rw'}`, folder]),
    unmount,
  };
}
export type SmallDisk = ReturnType<typeof mountSmallDisk>;

async function writeUntilFull(file: FileHandle, piece: Buffer): Promise<void> {
  try {
    for (;;) await file.write(piece);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}
