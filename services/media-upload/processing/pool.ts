import type { fork } from 'node:child_process';
import { type Logger, unavailable } from '@content-platform/chassis';
import { giveToDecoder } from './decoder-user.ts';
import type { Job, Outcome } from './job.ts';
import { createJobQueue, overloaded, type JobQueueOptions } from './job-queue.ts';
import { watchMemory } from './memory-limit.ts';
import * as proc from './proc.ts';
import { startWorkerProcess, type EndReason, type WorkerProcess } from './worker-process.ts';

/**
 * Memory of the service, and of each worker process. With two of them this is 640 of the container's 700 MiB. The rest
 * is a reserve for memory that is used before it is measured.
 */
const ownBytes = 260 * 2 ** 20;
const bytesPerWorker = 190 * 2 ** 20;

/**
 * Returns the number of worker processes, and the memory in bytes that they and the service may use together. `memory` is
 * the limit of their container in bytes; 0: unknown. With a process for each core of a large machine, the kernel would kill
 * processes and their uploads before the service's own limit applies.
 */
export function poolSizeFor(cores: number, memory: number): { size: number; maxBytes: number } {
  const fitting = memory > 0 ? Math.floor((memory - ownBytes) / bytesPerWorker) : Infinity;
  const size = Math.max(1, Math.min(cores, fitting));
  return { size, maxBytes: ownBytes + size * bytesPerWorker };
}

/** `size` is the number of worker processes. */
export interface PoolOptions extends JobQueueOptions {
  /** The folder with the folders of all jobs. */
  folder: string;
  /** Time limit of a job, in ms. */
  jobMs: number;
  /** Maximum memory of this process and its worker processes together, in bytes. Enforced on Linux only. */
  maxBytes: number;
  logger: Logger;
  /** Called with the seconds of each attempt with an outcome, also refused or failed; not if crowded or if it throws. */
  onDone?: (seconds: number) => void;
  /** The module that the worker processes run. */
  program?: URL;
  /** For tests: replaces `fork` of node:child_process. */
  startProcess?: typeof fork;
  /** For tests: replaces what /proc says about a process. */
  usage?: typeof proc;
}

export type Pool = ReturnType<typeof createPool>;

/** A job that used a core for a smaller share of its time limit was waiting for the disk or for a core. */
const busyShare = 0.75;

/** Creates long-lived worker processes, so that a decoder's crash or memory use does not affect this process. */
export function createPool(options: PoolOptions) {
  const { size, folder, jobMs, maxBytes, logger, onDone, startProcess, usage = proc } = options;
  const { program = new URL('worker.ts', import.meta.url) } = options;
  const queue = createJobQueue(options);
  const workers = new Set<WorkerProcess>();
  /** In the order of their jobs, the oldest first. */
  const busy = new Set<WorkerProcess>();
  let isClosed = false;

  const idle = () => [...workers].filter((worker) => !worker.isEnding && !busy.has(worker));
  const stopWatching = watchMemory({ maxBytes, idle, busy: () => [...busy], memoryOf: usage.rssOf });

  /** Throws 503 if no process can be started. */
  function start(): WorkerProcess {
    // Processes that the kernel has not ended count, too, so that they cannot pile up.
    if (isClosed || workers.size >= 2 * size) throw overloaded();
    try {
      const onExit = (worker: WorkerProcess) => void workers.delete(worker);
      const worker = startWorkerProcess({ program, folder, logger, onExit, startProcess });
      workers.add(worker);
      return worker;
    } catch (error) {
      throw unavailable('Files cannot be processed now. Retry later.', error);
    }
  }

  /** Converts the end of a job's process to the outcome of the job. */
  function outcomeOf(reason: EndReason, signal: AbortSignal): Outcome | 'crowded' {
    signal.throwIfAborted();
    if (reason === 'crashed') return { kind: 'refused', refusal: 'unreadable_file' };
    if (reason === 'costly') return { kind: 'refused', refusal: 'image_too_costly' };
    if (reason === 'crowded') return reason;
    throw reason === 'lost'
      ? unavailable('The file was not processed: its worker process ended.')
      : overloaded();
  }

  /** `isAlone`: ends the idle processes first, because they keep some memory of their last images. */
  async function attempt(job: Job, signal: AbortSignal, isAlone: boolean): Promise<Outcome | 'crowded'> {
    if (isAlone) for (const worker of idle()) worker.kill('idle');
    const worker = idle().at(-1) ?? start();
    busy.add(worker);
    const abort = () => worker.kill('aborted');
    signal.addEventListener('abort', abort);
    const cpuMsBefore = usage.cpuMsOf(worker.pid);
    const timer = setTimeout(() => {
      const usedMs = usage.cpuMsOf(worker.pid) - cpuMsBefore;
      worker.kill(usedMs >= busyShare * jobMs ? 'costly' : 'starved');
    }, jobMs);
    const begun = performance.now();
    try {
      await giveToDecoder([job.folder, job.path]);
      const result = await worker.run(job);
      // Killed, but its outcome arrived before its end. Its memory is free once it has ended.
      if (worker.isEnding) await worker.ended;
      const outcome = typeof result === 'string' ? outcomeOf(result, signal) : result;
      if (outcome !== 'crowded') onDone?.((performance.now() - begun) / 1_000);
      return outcome;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      busy.delete(worker);
    }
  }

  // Started in advance, so that the first uploads need not wait. If none can be started now, each upload tries again.
  try {
    for (let count = 0; count < size; count += 1) start();
  } catch (error) {
    logger.error({ error }, 'worker processes did not start; uploads try again');
  }

  return {
    /**
     * Runs the job in a worker process. A file that crashes the process, or alone takes too much time or memory, is refused.
     * Throws 503 on overload and if the machine failed: a retry may succeed. Throws the reason of an aborted `signal`; the
     * process has ended by then, unless the kernel takes longer than 5 s.
     */
    run: (job: Job, signal: AbortSignal, userId = 0): Promise<Outcome> =>
      queue.run(userId, signal, (isAlone) => attempt(job, signal, isAlone)),
    /** Resolves once a worker process can accept jobs; rejects if none can be started, or if it ends before. */
    async check(): Promise<void> {
      const worker = [...busy, ...idle()][0] ?? start();
      if (!(await worker.started)) throw unavailable('A worker process ended while it started.');
    },
    /** Ends the worker processes; resolves within 5 s. */
    async close(): Promise<void> {
      isClosed = true;
      stopWatching();
      for (const worker of workers) worker.kill('closed');
      await Promise.all(Array.from(workers, ({ ended }) => ended));
    },
  };
}
