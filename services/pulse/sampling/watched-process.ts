import type { PulseReport } from '@content-platform/contract';
import { countersOf, gauge, increase, type Counts } from './counters.ts';
import type { Scrape } from './scrape.ts';

const cpuWindowMs = 60_000;
const restartWindowMs = 3_600_000;
/** What a process counted that began within the window that targets look at is new, whoever looked. */
const youngMs = 300_000;
const nothing: Counts = new Map();

type ProcessState = PulseReport['processes'][number];

/** Every process observes requests of its own service, from its start on. */
function serviceOf(scrape: Scrape): string | undefined {
  const service = scrape.get('http_request_duration_seconds')?.[0]?.labels['service'];
  return service === undefined ? undefined : String(service);
}

/** What is remembered of the process at an address. `watchedSince` in ms: what it counted before is not known to be new. */
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

  /** Counters of before that those of now go on from; undefined: it counted before we looked. */
  function baseline(started: number, at: number): Counts | undefined {
    if (started === startedAt) return counters;
    return started >= Math.min(watchedSince, at - youngMs) ? nothing : undefined;
  }

  function cpuSince(at: number, seconds: number): number | null {
    cpu = [...cpu.filter((one) => at - one.at <= cpuWindowMs), { at, seconds }];
    const first = cpu[0]!;
    return at > first.at ? Math.max(0, (seconds - first.seconds) / ((at - first.at) / 1_000)) : null;
  }

  return {
    /** Takes a sample at `at` (ms); `scrape` undefined: it did not answer. Returns what was counted since the last one. */
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
