import { setTimeout as sleep } from 'node:timers/promises';
import { sum } from './counters.ts';
import { countedSince, gaugesOf, type Sample } from './sample.ts';
import { processesAt, scrape } from './scrape.ts';
import { measure } from './targets.ts';
import { watchAddresses, type WatchedProcess } from './watched-process.ts';

const intervalMs = 5_000;
/** The samples of an hour. */
const maxSamples = 720;
export const windowMs = 300_000;

/** Samples all processes every 5 seconds, and keeps the samples of an hour. */
export function startSampler(bases: readonly string[]) {
  const samples: Sample[] = [];
  const watch = watchAddresses();
  let processes: WatchedProcess[] = [];
  const closing = new AbortController();

  async function take(): Promise<void> {
    const addresses = [...new Set((await Promise.all(bases.map(processesAt))).flat())];
    processes = watch(addresses, Date.now());
    const scrapes = await Promise.all(addresses.map(scrape));
    const at = Date.now();
    const increases = sum(processes.map((process, index) => process.take(at, scrapes[index])));
    const gauges = gaugesOf(scrapes.filter((one) => one !== undefined));
    const sample: Sample = { at, increases, gauges, values: new Map() };
    samples.push(sample);
    if (samples.length > maxSamples) samples.shift();
    const targets = measure(countedSince(samples, at, windowMs), gauges, at);
    sample.values = new Map(targets.map(({ name, value }) => [name, value]));
  }

  const running = (async () => {
    while (!closing.signal.aborted) {
      const pause = sleep(intervalMs, undefined, { signal: closing.signal }).catch(() => undefined);
      await take();
      await pause;
    }
  })();

  return {
    /** Oldest first. */
    samples: (): readonly Sample[] => samples,
    processes: () => processes.map((process) => process.state()),
    async close(): Promise<void> {
      closing.abort();
      await running;
    },
  };
}
export type Sampler = Pick<ReturnType<typeof startSampler>, 'samples' | 'processes'>;
