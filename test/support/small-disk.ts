import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';

/** A disk of a test's own that can be made full, or read-only as a kernel makes one that is damaged. */
export interface SmallDisk {
  folder: string;
  /** Takes all the room that is left, piece by piece: who fills it may have something else to do. */
  fill(): Promise<void>;
  /** Gives that room back. */
  free(): void;
  readOnly(yes: boolean): void;
  unmount(): void;
}

/** Mounts a tmpfs at `folder`, which is made if need be. Only root may, on Linux; its size is memory once it is full. */
export function mountSmallDisk(folder: string, megabytes: number): SmallDisk {
  mkdirSync(folder, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0755`, 'tmpfs', folder]);
  const ballast = join(folder, 'ballast');
  let isMounted = true;
  // Lazily: who still has a file open there is about to be ended.
  const unmount = () => {
    if (isMounted) execFileSync('umount', ['--lazy', folder]);
    isMounted = false;
    process.removeListener('exit', unmount);
    process.removeListener('SIGTERM', end);
  };
  // Who is told to end has no exit of its own.
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
