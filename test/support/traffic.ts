import { setTimeout as sleep } from 'node:timers/promises';

/** Starts `work` at a fixed rate until stopped. A slow or failed call does not delay the others. */
export function startTraffic(perSecond: number, work: () => Promise<unknown>) {
  const stopping = new AbortController();
  const underWay = new Set<Promise<unknown>>();
  const running = (async () => {
    while (!stopping.signal.aborted) {
      const one: Promise<unknown> = work()
        .catch(() => undefined)
        .finally(() => underWay.delete(one));
      underWay.add(one);
      await sleep(1_000 / perSecond, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  })();
  return {
    async stop(): Promise<void> {
      stopping.abort();
      await running;
      await Promise.all(underWay);
    },
  };
}
export type Traffic = ReturnType<typeof startTraffic>;
