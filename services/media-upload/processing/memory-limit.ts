import type { WorkerProcess } from './worker-process.ts';

/** A decoder allocates about 50 MB in this time, so memory may briefly exceed the limit by that much. */
const checkEveryMs = 25;

interface MemoryLimit {
  /** Maximum memory of this process and its worker processes together, in bytes. */
  maxBytes: number;
  /** Worker processes without a job. */
  idle: () => readonly WorkerProcess[];
  /** Worker processes with a job, the oldest job first. */
  busy: () => readonly WorkerProcess[];
  /** Returns the memory that a process uses, in bytes. */
  memoryOf: (pid: number) => number;
}

/**
 * Kills at most one worker process if all together use more memory than `maxBytes`, because an image's memory is
 * unknown until it is decoded. It kills idle processes first, then the youngest job, so that the oldest job always
 * finishes. A job that runs alone is 'costly' if its process uses more than half of `maxBytes`, otherwise 'crowded'.
 */
export function enforceMemoryLimit({ maxBytes, idle, busy, memoryOf }: MemoryLimit): void {
  const workers = [...idle(), ...busy()];
  // A killed process will soon return its memory.
  if (busy().length === 0 || workers.some(({ isEnding }) => isEnding)) return;
  const used = workers.reduce((sum, { pid }) => sum + memoryOf(pid), memoryOf(process.pid));
  if (used <= maxBytes) return;
  const idleWorker = idle().at(-1);
  if (idleWorker) return idleWorker.kill('idle');
  const youngest = busy().at(-1)!;
  const isCostly = busy().length === 1 && memoryOf(youngest.pid) > maxBytes / 2;
  youngest.kill(isCostly ? 'costly' : 'crowded');
}

/** Enforces the limit every 25 ms until the returned function is called. Without /proc (outside Linux) it kills nothing. */
export function watchMemory(limit: MemoryLimit): () => void {
  const timer = setInterval(() => enforceMemoryLimit(limit), checkEveryMs);
  timer.unref();
  return () => clearInterval(timer);
}
