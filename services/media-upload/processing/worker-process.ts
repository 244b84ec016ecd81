import { AsyncLocalStorage } from 'node:async_hooks';
import { fork } from 'node:child_process';
import { relative } from 'node:path';
import { type Logger, outsideContext } from '@content-platform/chassis';
import type { Job, Outcome } from './job.ts';

/**
 * Why the pool kills a worker process. costly: its job used a core for the whole time limit, or too much memory by itself.
 * starved: its job ran into the time limit without a core for most of it. crowded: all jobs together use too much memory.
 * aborted: the client disconnected. idle: it has no job, and its memory is needed. closed: the pool is closed.
 */
type KillReason = 'costly' | 'starved' | 'crowded' | 'aborted' | 'idle' | 'closed';

/** crashed: a fault in the process's own code. lost: any other end that the pool did not cause. */
export type EndReason = KillReason | 'crashed' | 'lost';

export interface WorkerProcess {
  readonly pid: number;
  /** Whether the process was killed or has ended, so that it accepts no more jobs. */
  readonly isEnding: boolean;
  /** Resolves with true when the process can accept jobs, with false if it ends before. Never rejects. */
  readonly started: Promise<boolean>;
  /** Resolves when the process has exited, or 5 s after `kill` if the kernel has not ended it by then. Never rejects. */
  readonly ended: Promise<EndReason>;
  /** Sends the job. Resolves with its outcome, or with the reason why the process ended earlier. Never rejects. */
  run(job: Job): Promise<Outcome | EndReason>;
  /** Sends SIGKILL; `ended` resolves with `reason`. */
  kill(reason: KillReason): void;
}

interface WorkerProcessOptions {
  /** The module that the process runs. It sends 'ready' once it is loaded, then an outcome for each job. */
  program: URL;
  /** The folder that the process starts in, with the folders of its jobs. */
  folder: string;
  logger: Logger;
  /** Called once, when the process no longer exists. */
  onExit: (worker: WorkerProcess) => void;
  /** Replaces `fork` of node:child_process in tests. */
  startProcess?: typeof fork | undefined;
}

/** Signals that show a fault in a process's own code. SIGBUS does not: on Linux a failing or full disk causes it. */
const crashSignals = new Set(['SIGSEGV', 'SIGABRT', 'SIGILL', 'SIGFPE', 'SIGTRAP', 'SIGSYS']);

/** Maximum wait for a process that the kernel cannot kill while it reads from a stalled disk. */
const exitLimitMs = 5_000;

const forkOptions = {
  execArgv: [],
  // Does not inherit our variables: a compromised decoder could read their URLs and passwords. For other secrets see
  // docs/guides/uploads.md#decoders-and-secrets. glibc keeps a heap for each thread; two are enough for one image at a
  // time. With fixed thresholds glibc returns the memory of large images.
  env: { MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '262144', MALLOC_TRIM_THRESHOLD_: '262144' },
  stdio: ['ignore' as const, 'ignore' as const, 'inherit' as const, 'ipc' as const],
};

/** Starts a worker process. Throws if the operating system refuses, for example with EAGAIN. */
export function startWorkerProcess(options: WorkerProcessOptions): WorkerProcess {
  const { program, folder, logger, onExit, startProcess = fork } = options;
  const child = startProcess(program, { ...forkOptions, cwd: folder });
  child.on('error', (error) => logger.error({ error, pid: child.pid }, 'a worker process failed'));
  const { pid } = child;
  // Node.js reports a failed spawn only later by 'error', without an 'exit' event.
  if (pid === undefined) throw new Error('The worker process did not start.');

  let isReady = false;
  let reason: EndReason | undefined;
  const ready = Promise.withResolvers<boolean>();
  const end = Promise.withResolvers<EndReason>();
  let onResult: (result: Outcome | EndReason) => void = () => undefined;
  // Not a race in `run`: until the process ends, `end` would keep the outcome of each job in memory.
  void end.promise.then((why) => onResult(why));
  // Node calls the listeners in the context of the request that started the process, which may have ended long ago.
  const outside = outsideContext(() => AsyncLocalStorage.snapshot());
  let inContextOfJob = outside;

  child.on('message', (message) => {
    if (message !== 'ready') return onResult(message as Outcome);
    isReady = true;
    ready.resolve(true);
  });
  child.once('exit', (code, signal) => {
    if (reason === undefined) {
      // Before the process was ready, it read no file. A cause is, for example, that its threads could not be started.
      reason = isReady && crashSignals.has(signal ?? '') ? 'crashed' : 'lost';
      inContextOfJob(() => logger.warn({ pid, exit: code, signal }, 'a worker process ended unexpectedly'));
    }
    end.resolve(reason);
    onExit(worker);
  });

  const worker: WorkerProcess = {
    pid,
    started: Promise.race([ready.promise, end.promise.then(() => false)]),
    ended: end.promise,
    get isEnding() {
      return reason !== undefined;
    },
    run(job) {
      inContextOfJob = AsyncLocalStorage.snapshot();
      if (reason !== undefined) return end.promise;
      const result = new Promise<Outcome | EndReason>((resolve) => (onResult = resolve));
      // The paths are relative, because its user may not have access to the folders above.
      const paths = { path: relative(folder, job.path), folder: relative(folder, job.folder) };
      // A process that cannot be reached counts as lost.
      child.send({ ...job, ...paths }, (error) => error && child.kill('SIGKILL'));
      return result.finally(() => (inContextOfJob = outside));
    },
    kill(why) {
      if (reason !== undefined) return;
      reason = why;
      child.kill('SIGKILL');
      setTimeout(() => end.resolve(why), exitLimitMs).unref();
    },
  };
  return worker;
}
