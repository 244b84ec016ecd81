import type { PulseReport } from '@content-platform/contract';
import { countersOf, gauge, increase, type Counts } from './counters.ts';
import type { Scrape } from './scrape.ts';

const cpuWindowMs = 60_000;
const restartWindowMs = 3_600_000;
/** All counts of a process that started within the window of the targets are new. */
const youngMs = 300_000;
const nothing: Counts = new Map();

type ProcessState = PulseReport['processes'][number];

function serviceOf(scrape: Scrape): string | undefined {
  const service = scrape.get('http_request_duration_seconds')?.[0]?.labels['service'];
  return service === undefined ? undefined : String(service);
}

/** Remembers the process at an address. Counts from before `watchedSince` (ms) may be old, so that they are ignored. */
export function watchProcess(address: string, watchedSince: number) {
  let state: ProcessState = {
    service: null,
    address,
    up: false,
    cpu: null,
    memory_bytes: null,
    event_loop_delay: null,
    started_at: null,
    restarts: 0,
  };
  let startedAt: number | undefined;
  let counters: Counts = nothing;
  let cpu: { at: number; seconds: number }[] = [];
  let restarts: number[] = [];

  /** Returns the counters to subtract; undefined: unknown, as the process was running before it was watched. */
  function baseline(started: number, at: number): Counts | undefined {
    if (started === startedAt) return counters;
    return started >= Math.min(watchedSince, at - youngMs) ? nothing : undefined;
  }

  function cpuSince(at: number, seconds: number): number | null {
    cpu = [...cpu.filter(({ at: time }) => at - time <= cpuWindowMs), { at, seconds }];
    const first = cpu[0]!;
    return at > first.at ? Math.max(0, (seconds - first.seconds) / ((at - first.at) / 1_000)) : null;
  }

  return {
    /** Takes a sample at `at` (ms) and returns the increases since the last one. `scrape` undefined: the process is down. */
    take(at: number, scrape: Scrape | undefined): Counts {
      restarts = restarts.filter((time) => at - time <= restartWindowMs);
      if (!scrape) {
        state = { ...state, up: false, cpu: null, memory_bytes: null, event_loop_delay: null };
        return nothing;
      }
      const started = (gauge(scrape, 'process_start_time_seconds') ?? 0) * 1_000;
      const before = baseline(started, at);
      if (startedAt !== undefined && started !== startedAt) {
        restarts.push(at);
        cpu = [];
      }
      startedAt = started;
      counters = countersOf(scrape);
      state = {
        service: serviceOf(scrape) ?? state.service,
        address,
        up: true,
        cpu: cpuSince(at, gauge(scrape, 'process_cpu_seconds_total') ?? 0),
        memory_bytes: gauge(scrape, 'process_resident_memory_bytes') ?? null,
        event_loop_delay: gauge(scrape, 'nodejs_eventloop_lag_p99_seconds') ?? null,
        started_at: new Date(started).toISOString(),
        restarts: restarts.length,
      };
      return before ? increase(counters, before) : nothing;
    },
    state: () => state,
  };
}
export type WatchedProcess = ReturnType<typeof watchProcess>;

/** A process is remembered this long after its address was last resolved: the window of the targets. */
const keptMs = 300_000;

interface Watched {
  process: WatchedProcess;
  /** When the address was last resolved, in ms. */
  at: number;
}

/**
 * Remembers the process at each address. A name loses the address of a process that is not ready; when the address
 * returns, the process's earlier counts must not count as new.
 */
export function watchAddresses() {
  const watched = new Map<string, Watched>();

  function watch(address: string, at: number): WatchedProcess {
    const process = watched.get(address)?.process ?? watchProcess(address, at);
    watched.set(address, { process, at });
    return process;
  }

  /** Returns the processes at these addresses, at `now` (ms). */
  return (addresses: readonly string[], now: number): WatchedProcess[] => {
    for (const [address, { at }] of watched) if (at < now - keptMs) watched.delete(address);
    return addresses.map((address) => watch(address, now));
  };
}
