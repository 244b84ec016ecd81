import type { Request } from 'express';
import { hasBody, HttpError, requestId } from '@content-platform/chassis';
import { sendError } from '../replies/errors.ts';
import { onFinished, type EarlyStep, type GatewayResponse } from '../request-context.ts';
import type { GatewayMetrics } from '../metrics.ts';
import type { CorsHeaders } from './browser-headers.ts';

/** Accepted lag of the event loop: less than half of the 50 ms that a refusal may take. */
const maxLagMs = 20;
/** A lag that lasts this long, and for two checks, is neither a burst nor a garbage collection (CoDel, RFC 8289 §3). */
const windowMs = 100;
const checkIntervalMs = 10;
/** Minimum limit: this many requests keep a core busy, and end before a refusal would be too late. */
const minLimit = 64;
const maxLimit = 10_000;
/** Bounds for the change of the limit in one window. */
const [minGradient, maxGradient] = [0.1, 1.5];
/** A thread that lags with less CPU share than this, averaged over `cpuShareOverMs`, waits for other processes. */
const busyCpuShare = 0.4;
const cpuShareOverMs = 1_000;
/** The minimum while other processes have the core. */
const minLimitStarved = 256;

interface LoadShedding {
  /** Counts the request from its last byte until its reply begins. If overloaded, sends 503 and returns false. */
  admit: EarlyStep;
  stop(): void;
}

const overloaded = new HttpError(
  'overloaded',
  'The server is overloaded. Wait for the number of seconds in Retry-After.',
  { headers: { 'Retry-After': '1' } },
);

/** The source of load shedding's times, in ms. */
export interface LoopClock {
  /** Calls `work` every `ms`, later if the event loop lags. Returns a function that stops the calls. */
  every(ms: number, work: () => void): () => void;
  now(): number;
  /** CPU time of this thread. */
  cpu(): number;
}

const systemClock: LoopClock = {
  every(ms, work) {
    const timer = setInterval(work, ms).unref();
    return () => clearInterval(timer);
  },
  now: () => performance.now(),
  cpu() {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  },
};

interface LoadSheddingOptions {
  metrics: GatewayMetrics;
  corsHeaders: CorsHeaders;
  drainMs: number;
  /** Requests that are never shed. */
  isExempt: (request: Request) => boolean;
  clock?: LoopClock | undefined;
}

/**
 * Refuses requests while the event loop lags, so that accepted requests are answered in time. All requests in progress
 * share one core: with fewer requests, each ends sooner. The limit follows the lag (a gradient, as in Netflix's
 * concurrency-limits); time spent in services does not count. If other processes use the core, for example while they
 * start, the lag is not an overload and more requests are accepted. A refusal checks no token and no rate limit, and
 * writes no log line.
 */
export function createLoadShedding(options: LoadSheddingOptions): LoadShedding {
  const { metrics, corsHeaders, drainMs, isExempt, clock = systemClock } = options;
  const inProgress = new Set<GatewayResponse>();
  let limit = maxLimit;
  let checkedAt = clock.now();
  let windowStart = checkedAt;
  /** Window minimum: only a standing queue keeps it high. */
  let minLag = Infinity;
  let checks = 0;
  let usedCpuMs = clock.cpu();
  /** The thread's share of a core, as a moving average. */
  let cpuShare = 0;

  function updateCpuShare(elapsedMs: number): void {
    const before = usedCpuMs;
    usedCpuMs = clock.cpu();
    cpuShare += ((usedCpuMs - before) / elapsedMs - cpuShare) * (1 - Math.exp(-elapsedMs / cpuShareOverMs));
  }

  function check(): void {
    const now = clock.now();
    // Not counted: a reply that has begun waits for its client or for bytes of the service.
    for (const response of inProgress) if (response.headersSent) inProgress.delete(response);
    minLag = Math.min(minLag, now - checkedAt - checkIntervalMs);
    checkedAt = now;
    checks += 1;
    if (now < windowStart + windowMs || checks < 2) return;
    updateCpuShare(now - windowStart);
    const gradient = Math.min(maxGradient, Math.max(minGradient, maxLagMs / Math.max(minLag, 1)));
    const from = gradient < 1 ? Math.min(limit, inProgress.size) : limit;
    const least = cpuShare < busyCpuShare ? minLimitStarved : minLimit;
    limit = Math.min(maxLimit, Math.max(least, from * gradient));
    minLag = Infinity;
    checks = 0;
    windowStart = now;
  }
  const stop = clock.every(checkIntervalMs, check);

  function count(response: GatewayResponse): void {
    if (response.destroyed) return;
    inProgress.add(response);
    const leave = () => inProgress.delete(response);
    // 'prefinish' is emitted when the whole reply is written, before a slow client has read it. It may never be emitted.
    response.once('prefinish', leave);
    onFinished(response, leave);
  }

  function refuse(request: Request, response: GatewayResponse): void {
    metrics.requestsShed.inc();
    const headers = { Vary: 'Origin', ...corsHeaders(request) };
    const id = requestId(request.headers['x-request-id'] as string | undefined);
    sendError(request, response, overloaded, { requestId: id, drainMs, headers });
  }

  return {
    admit(request, response) {
      if (inProgress.size >= limit && !isExempt(request)) {
        refuse(request, response);
        return false;
      }
      // Slow senders and slow readers must not cause refusals of other clients.
      if (hasBody(request)) request.once('end', () => count(response));
      else count(response);
    },
    stop,
  };
}
