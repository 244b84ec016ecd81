import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createSlots, type Logger, type Release, type Slots, unavailable } from '@content-platform/chassis';
import type { Job, Outcome } from './job.ts';
import { cpuMsOf, rssOf } from './proc.ts';

export interface PoolOptions {
  /** Children, each with one job at a time. */
  size: number;
  /** Jobs that may wait for a child. */
  maxWaiting: number;
  /** How long each waits at most, in ms. */
  waitMs: number;
  /** How long a job may take, in ms. */
  jobMs: number;
  /** Memory that this process and the children may have in use together, in bytes. Held on Linux only. */
  maxBytes: number;
  logger: Logger;
  /** Called with the time of each job that came to an end, in seconds. */
  onDone?: (seconds: number) => void;
  /** What runs in the children. */
  worker?: URL;
}

export interface Pool {
  /**
   * Has a child do the job. A child that dies, or takes too long and is killed, takes only its job along: that is
   * refused then. Of one owner there are as many jobs at a time as there are children; the others' come next. One that is ended as all together take too much memory is done again, alone. Throws 503 when there is
   * too much to do, and the signal's reason when that is aborted; the job's child is dead by then.
   */
  run(job: Job, signal: AbortSignal, owner?: number): Promise<Outcome>;
  /** Ends the children. */
  close(): Promise<void>;
}

/** A job that was ended had a core for less than this share of its time, and more than a child that hangs: others had it. */
const [idleShare, busyShare] = [0.05, 0.75];

/** What a decoder can take in this time is what `maxBytes` may be passed by: some 50 MB. */
const lookEveryMs = 25;

/** Why a child was ended in the middle of a job: it takes too much at any time, or at this one: memory, or cores that others use. */
type End = 'costly' | 'crowded' | 'late';

/** Child processes that are kept, so that a decoder's crash is not ours, and its memory neither. */
export function createPool(options: PoolOptions): Pool {
  const { size, maxWaiting, waitMs, jobMs, maxBytes, logger, onDone } = options;
  const { worker = new URL('worker.ts', import.meta.url) } = options;
  const slots = createSlots(size, maxWaiting);
  const alone = createSlots(1, maxWaiting);
  const children = new Set<ChildProcess>();
  const idle: ChildProcess[] = [];
  /** What ends each job that is under way, the oldest first. */
  const working = new Map<ChildProcess, (why: End) => void>();
  let closing = false;

  function start(): ChildProcess {
    const child = fork(worker, {
      execArgv: [],
      // Nothing of our environment: a decoder that was taken over learns no address or password from it. glibc keeps
      // memory for each thread; two such heaps are enough for one picture at a time. With a fixed threshold it gives
      // back what a large picture took: otherwise that grows with each picture, and stays.
      env: {
        MALLOC_ARENA_MAX: '2',
        MALLOC_MMAP_THRESHOLD_: '262144',
        MALLOC_TRIM_THRESHOLD_: '262144',
      },
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

  /** Resolves with what the child says, or why it does not; 'crowded' when others left too little memory for it. */
  async function ask(child: ChildProcess, job: Job, signal: AbortSignal): Promise<Outcome | 'crowded'> {
    const ended = new AbortController();
    let ending: End | undefined;
    const kill = () => child.kill('SIGKILL');
    const end = (why: End) => {
      ending = why;
      kill();
    };
    const before = cpuMsOf(child.pid);
    const timer = setTimeout(() => {
      const share = (cpuMsOf(child.pid) - before) / jobMs;
      end(share > idleShare && share < busyShare ? 'late' : 'costly');
    }, jobMs);
    working.set(child, end);
    signal.addEventListener('abort', kill);
    try {
      child.send(job, () => undefined);
      const outcome = once(child, 'message', ended).then(([message]) => message as Outcome);
      const exit = once(child, 'exit', ended).then((): Outcome | 'crowded' => {
        signal.throwIfAborted();
        if (ending === 'crowded') return ending;
        if (ending === 'late') throw tooMuch();
        return { kind: 'refused', refusal: ending === 'costly' ? 'image_too_costly' : 'unreadable_file' };
      });
      return await Promise.race([outcome, exit]);
    } finally {
      clearTimeout(timer);
      working.delete(child);
      signal.removeEventListener('abort', kill);
      ended.abort();
    }
  }

  const tooMuch = () => unavailable('There is too much to do at the moment.');

  /** 503 to who has waited too long. */
  async function wait(queue: Slots, signal: AbortSignal): Promise<Release> {
    const waiting = AbortSignal.any([signal, AbortSignal.timeout(waitMs)]);
    return queue.wait(waiting).catch((error: unknown) => {
      signal.throwIfAborted();
      throw waiting.aborted ? tooMuch() : error;
    });
  }

  const turnsOf = new Map<number, { slots: Slots; jobs: number }>();
  /** Does the work when it is this owner's turn. */
  async function turns<T>(owner: number, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const own = turnsOf.get(owner) ?? { slots: createSlots(size, maxWaiting), jobs: 0 };
    turnsOf.set(owner, own);
    own.jobs += 1;
    try {
      const release = await wait(own.slots, signal);
      return await work().finally(release);
    } finally {
      own.jobs -= 1;
      if (own.jobs === 0) turnsOf.delete(owner);
    }
  }

  /** Every slot at once; one after the other who asks for that, or two would wait for each other's. */
  async function waitForAll(signal: AbortSignal): Promise<Release> {
    const held = [await wait(alone, signal)];
    const releaseAll = () => held.forEach((release) => release());
    try {
      while (held.length <= size) held.push(await wait(slots, signal));
    } catch (error) {
      releaseAll();
      throw error;
    }
    // At rest they keep some of what their last pictures took.
    for (const child of idle.splice(0)) child.kill('SIGKILL');
    return releaseAll;
  }

  /** Does the job in a child, in the slot that is ours until `release`. */
  async function attempt(job: Job, signal: AbortSignal, release: Release): Promise<Outcome | 'crowded'> {
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
  }

  /**
   * What a picture takes cannot be told before it is decoded. When all together take too much, first a child that has
   * nothing to do goes, then the youngest job, so that the oldest always gets through. One that is alone, and takes the
   * larger half itself, is too costly.
   */
  function relieve(): void {
    // What was killed gives its memory back in a moment.
    if (working.size === 0 || [...children].some(({ killed }) => killed)) return;
    const inChildren = [...children].reduce((sum, { pid }) => sum + rssOf(pid), 0);
    if (process.memoryUsage.rss() + inChildren <= maxBytes) return;
    const rested = idle.pop();
    if (rested) rested.kill('SIGKILL');
    else {
      const [child, end] = [...working].at(-1)!;
      end(working.size === 1 && rssOf(child.pid) > maxBytes / 2 ? 'costly' : 'crowded');
    }
  }
  const looking = setInterval(relieve, lookEveryMs);
  looking.unref();

  idle.push(...Array.from({ length: size }, start));

  return {
    async run(job, signal, owner = 0) {
      return turns(owner, signal, async () => {
        const first = await attempt(job, signal, await wait(slots, signal));
        if (first !== 'crowded') return first;
        const second = await attempt(job, signal, await waitForAll(signal));
        if (second === 'crowded') throw tooMuch();
        return second;
      });
    },
    async close() {
      closing = true;
      clearInterval(looking);
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
