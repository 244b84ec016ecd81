import type { PulseReport } from '@content-platform/contract';
import { countersOf, increase, largestValue, type Counts } from './counters.ts';
import type { Scrape } from './scrape.ts';
import { countWindowMs } from './targets.ts';

const cpuWindowMs = 60_000;
const restartWindowMs = 3_600_000;
const nothing: Counts = new Map();

type ProcessState = PulseReport['processes'][number];

/** Remembers the process at an address. Ignores counts from before `watchedSince` (ms), which may be old. */
export function watchProcess(address: string, watchedSince: number) {
  const unknown = { up: false, cpu: null, memory_bytes: null, event_loop_delay: null };
  let state: ProcessState = { service: null, address, ...unknown, started_at: null, restarts: 0 };
  let startedAt: number | undefined;
  let counters: Counts = nothing;
  let cpu: { at: number; seconds: number }[] = [];
  let restarts: number[] = [];

  /** Returns the counters to subtract: none for a new process; undefined: unknown, as it ran before it was watched. */
  function baseline(started: number, at: number): Counts | undefined {
    if (started === startedAt) return counters;
    return started >= Math.min(watchedSince, at - countWindowMs) ? nothing : undefined;
  }

  function cpuSince(at: number, seconds: number): number | null {
    cpu = [...cpu.filter(({ at: time }) => time < at && at - time <= cpuWindowMs), { at, seconds }];
    const first = cpu[0]!;
    return at > first.at ? Math.max(0, (seconds - first.seconds) / ((at - first.at) / 1_000)) : null;
  }

  return {
    /** Takes a sample at `at` (ms) and returns the increases since the last one. `scrape` undefined: the process is down. */
    take(at: number, scrape: Scrape | undefined): Counts {
      restarts = restarts.filter((time) => at - time <= restartWindowMs);
      if (!scrape) {
        state = { ...state, ...unknown };
        return nothing;
      }
      const started = (largestValue('process_start_time_seconds', scrape) ?? 0) * 1_000;
      const before = baseline(started, at);
      if (startedAt !== undefined && started !== startedAt) {
        restarts.push(at);
        cpu = [];
      }
      startedAt = started;
      counters = countersOf(scrape);
      const service = scrape.get('http_request_duration_seconds')?.[0]?.labels['service'];
      state = {
        service: service === undefined ? state.service : String(service),
        address,
        up: true,
        cpu: cpuSince(at, largestValue('process_cpu_seconds_total', scrape) ?? 0),
        memory_bytes: largestValue('process_resident_memory_bytes', scrape) ?? null,
        event_loop_delay: largestValue('nodejs_eventloop_lag_p99_seconds', scrape) ?? null,
        started_at: new Date(started).toISOString(),
        restarts: restarts.length,
      };
      return before ? increase(counters, before) : nothing;
    },
    state: () => state,
  };
}
export type WatchedProcess = ReturnType<typeof watchProcess>;

/** Keeps an address's process for 5 min after its last lookup, so that old counts do not look new when it returns. */
export function watchAddresses() {
  /** `at`: when the address was last resolved, in ms. */
  const watched = new Map<string, { process: WatchedProcess; at: number }>();
  /** Returns the processes at these addresses, at `now` (ms). */
  return (addresses: readonly string[], now: number): WatchedProcess[] => {
    for (const [address, { at }] of watched) if (at < now - countWindowMs) watched.delete(address);
    return addresses.map((address) => {
      const process = watched.get(address)?.process ?? watchProcess(address, now);
      watched.set(address, { process, at: now });
      return process;
    });
  };
}
