import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { ContentCacheOptions } from '../index.ts';
import { ledgerMemory } from './ledger.ts';
import { noFigures, type RaceFigures, type RaceOptions } from './race.ts';

/** The cache of one thread, as one process has it. */
export interface CacheSettings extends Partial<Omit<ContentCacheOptions, 'recover' | 'onStateChange'>> {
  url: string;
  /** Its reads go to this URL instead. */
  readsFrom?: string;
}

/** The options of one thread; all threads race for the same records. */
export interface RaceThread extends Omit<RaceOptions, 'caches' | 'done' | 'foreign'> {
  caches: CacheSettings[];
  /** Another program's connection, for unmanaged keys. */
  foreignUrl?: string;
}

export type ThreadFigures = RaceFigures & { heapUsed: number };

const ASK_MS = 500;

/** Starts a race in several threads, which read, change and clear the same records. */
export function startThreads(threads: number, race: RaceThread) {
  const memory = ledgerMemory(race.models.length * race.records);
  const latest: ThreadFigures[] = [];
  const workers = Array.from({ length: threads }, (_, index) => {
    const workerData = { ...race, memory, seed: race.seed + index * 1_000 } satisfies RaceThread;
    const worker = new Worker(new URL('./race-thread.ts', import.meta.url), { workerData });
    worker.on('message', (figures: ThreadFigures) => (latest[index] = figures));
    return worker;
  });
  const ended = workers.map((worker) => once(worker, 'exit'));
  const failed = Promise.all(ended);
  failed.catch(() => undefined);

  function figures(): RaceFigures {
    const total: RaceFigures = { ...noFigures };
    for (const reported of latest.filter(Boolean)) {
      for (const name of Object.keys(noFigures) as (keyof typeof noFigures)[]) total[name] += reported[name];
      if (reported.firstStale !== undefined) total.firstStale ??= reported.firstStale;
    }
    return total;
  }

  return {
    /** The figures of all threads so far; final after stop(). */
    figures,
    /** Bytes that each thread's heap has in use. */
    heaps: (): number[] => latest.map(({ heapUsed }) => heapUsed),
    /** Resolves when `isOver` returns true, which is called twice a second. Rejects when a thread fails. */
    async until(isOver: (figures: RaceFigures) => boolean): Promise<void> {
      while (!isOver(figures())) await Promise.race([sleep(ASK_MS), failed]);
    },
    async stop(): Promise<void> {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have none
      for (const worker of workers) worker.postMessage('stop');
      await failed;
    },
  };
}
