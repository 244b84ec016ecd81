import type { WorkerProcess } from './worker-process.ts';

/** In this time a decoder takes 50 MB or so: the limit is exceeded by that much for a moment. */
const checkEveryMs = 25;

export interface MemoryLimit {
  /** Memory that this process and its worker processes may use together, in bytes. */
  maxBytes: number;
  /** Those without a job. */
  idle: () => readonly WorkerProcess[];
  /** Those with a job, the oldest job first. */
  busy: () => readonly WorkerProcess[];
  /** Memory that a process uses, in bytes. */
  memoryOf: (pid: number) => number;
}

/**
 * Kills at most one worker process when all together use more memory than `maxBytes`: how much an image takes is only
 * known once it is decoded. Idle processes go first, then the youngest job, so that the oldest always finishes. A job
 * that is alone is 'costly' if it uses the larger half itself, otherwise 'crowded'.
 */
export function enforceMemoryLimit({ maxBytes, idle, busy, memoryOf }: MemoryLimit): void {
  const workers = [...idle(), ...busy()];
  // The memory of a killed process is free in a moment.
  if (busy().length === 0 || workers.some(({ isEnding }) => isEnding)) return;
  const used = workers.reduce((sum, { pid }) => sum + memoryOf(pid), memoryOf(process.pid));
  if (used <= maxBytes) return;
  const rested = idle().at(-1);
  if (rested) return rested.kill('idle');
  const youngest = busy().at(-1)!;
  const isCostly = busy().length === 1 && memoryOf(youngest.pid) > maxBytes / 2;
  youngest.kill(isCostly ? 'costly' : 'crowded');
}

/** Enforces the limit every 25 ms until the returned function is called. Without /proc (outside Linux) nothing is killed. */
export function watchMemory(limit: MemoryLimit): () => void {
  const timer = setInterval(() => enforceMemoryLimit(limit), checkEveryMs);
  timer.unref();
  return () => clearInterval(timer);
}
