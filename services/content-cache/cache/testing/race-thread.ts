// One thread of a race, with its own event loop and connections: see threads.ts.
import { parentPort, workerData } from 'node:worker_threads';
import { Redis } from 'ioredis';
import { startCache } from './caches.ts';
import { runRace, type RaceCache, type RaceFigures } from './race.ts';
import type { CacheSettings, RaceThread, ThreadFigures } from './threads.ts';

const REPORT_MS = 500;

const { caches: settings, foreignUrl, ...race } = workerData as RaceThread;
let isOver = false;
parentPort!.on('message', () => (isOver = true));

const closing: (() => unknown)[] = [];
const foreign = foreignUrl === undefined ? undefined : new Redis(foreignUrl);
const caches = await Promise.all(settings.map(open));

/** With `readsFrom`, reads go to that address only, clears to `url`. */
async function open({ readsFrom, ...options }: CacheSettings): Promise<RaceCache> {
  const cache = await startCache(options.url, options);
  closing.push(cache.close);
  if (readsFrom === undefined) return cache;
  const other = await open({ ...options, url: readsFrom });
  return { ...cache, read: other.read, readMany: other.readMany };
}

let reportedAt = performance.now();
function report(figures: RaceFigures): void {
  reportedAt = performance.now();
  const { heapUsed } = process.memoryUsage();
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have none
  parentPort!.postMessage({ ...figures, heapUsed } satisfies ThreadFigures);
}

const figures = await runRace({
  ...race,
  caches,
  ...(foreign ? { foreign } : {}),
  done(sofar) {
    if (performance.now() - reportedAt > REPORT_MS) report(sofar);
    return isOver;
  },
});
report(figures);
await Promise.all(closing.map((close) => close()));
foreign?.disconnect();
parentPort!.close();
