import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createSlots, type Logger, unavailable } from '@content-platform/chassis';
import type { Job, Outcome } from './job.ts';

export interface PoolOptions {
  /** Children, each with one job at a time. */
  size: number;
  /** Jobs that may wait for a child. */
  maxWaiting: number;
  /** How long each waits at most, in ms. */
  waitMs: number;
  /** How long a job may take, in ms. */
  jobMs: number;
  logger: Logger;
  /** Called with the time of each job that came to an end, in seconds. */
  onDone?: (seconds: number) => void;
  /** What runs in the children. */
  worker?: URL;
}

export interface Pool {
  /**
   * Has a child do the job. A child that dies, or takes too long and is killed, takes only its job along: that is
   * refused then. Throws 503 when there is too much to do, and the signal's reason when that is aborted; the job's
   * child is dead by then.
   */
  run(job: Job, signal: AbortSignal): Promise<Outcome>;
  /** Ends the children. */
  close(): Promise<void>;
}

/** Child processes that are kept, so that a decoder's crash is not ours, and its memory neither. */
export function createPool(options: PoolOptions): Pool {
  const { size, maxWaiting, waitMs, jobMs, logger, onDone } = options;
  const { worker = new URL('worker.ts', import.meta.url) } = options;
  const slots = createSlots(size, maxWaiting);
  const children = new Set<ChildProcess>();
  const idle: ChildProcess[] = [];
  let closing = false;

  function start(): ChildProcess {
    const child = fork(worker, {
      execArgv: [],
      // Nothing of our environment: a decoder that was taken over learns no address or password from it. glibc keeps
      // memory for each thread; two such heaps are enough for one picture at a time.
      env: { MALLOC_ARENA_MAX: '2' },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    children.add(child);
    child.once('exit', (code, signal) => {
      children.delete(child);
      const place = idle.indexOf(child);
      if (place >= 0) idle.splice(place, 1);
      if (!closing) logger.warn({ code, signal }, 'a child that makes variants is gone');
    });
    child.on('error', (error) => logger.error({ error }, 'a child that makes variants cannot be reached'));
    return child;
  }

  /** Resolves with what the child says, or why it does not. */
  async function ask(child: ChildProcess, job: Job, signal: AbortSignal): Promise<Outcome> {
    const ended = new AbortController();
    let late = false;
    const kill = () => child.kill('SIGKILL');
    const timer = setTimeout(() => {
      late = true;
      kill();
    }, jobMs);
    signal.addEventListener('abort', kill);
    try {
      child.send(job, () => undefined);
      const outcome = once(child, 'message', ended).then(([message]) => message as Outcome);
      const exit = once(child, 'exit', ended).then((): Outcome => {
        signal.throwIfAborted();
        return { kind: 'refused', refusal: late ? 'image_too_costly' : 'unreadable_file' };
      });
      return await Promise.race([outcome, exit]);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', kill);
      ended.abort();
    }
  }

  /** 503 to who has waited too long. */
  async function waitForChild(signal: AbortSignal) {
    const waiting = AbortSignal.any([signal, AbortSignal.timeout(waitMs)]);
    return slots.wait(waiting).catch((error: unknown) => {
      signal.throwIfAborted();
      throw waiting.aborted ? unavailable('There is too much to do at the moment.', error) : error;
    });
  }

  idle.push(...Array.from({ length: size }, start));

  return {
    async run(job, signal) {
      const release = await waitForChild(signal);
      const child = idle.pop() ?? start();
      const begun = performance.now();
      try {
        const outcome = await ask(child, job, signal);
        onDone?.((performance.now() - begun) / 1_000);
        return outcome;
      } finally {
        if (children.has(child) && !child.killed) idle.push(child);
        release();
      }
    },
    async close() {
      closing = true;
      await Promise.all(
        [...children].map((child) => {
          const exit = once(child, 'exit');
          child.kill('SIGKILL');
          return exit;
        }),
      );
    },
  };
}
