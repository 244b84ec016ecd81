import type { Request } from 'express';
import { health } from '@content-platform/contract';
import { endAfterBody, envelope, hasBody, HttpError, requestId } from '@content-platform/chassis';
import type { CorsHeaders } from './cors.ts';
import type { GatewayResponse } from './exchange.ts';
import type { GatewayMetrics } from './metrics.ts';

/** How late the event loop may be, in ms: less than half of the 50 that a refusal may take. */
export const usualLateMs = 20;
/** A delay that stands for so long, and for two looks, is neither a burst nor a garbage collection (CoDel, RFC 8289 §3). */
const windowMs = 100;
const lookEveryMs = 10;
/** So many are always let in: they keep a core busy, and are done before a refusal would have been late. */
const fewest = 64;
const most = 10_000;
/** How fast the limit may change in a window. */
const [slowest, fastest] = [0.1, 1.5];
/** Who is late with less than this part of a core, over about so many ms, waits for other processes: so many are let in then. */
const leastBusy = 0.4;
const busyOverMs = 1_000;
const fewestKeptWaiting = 256;

export interface LoadShedding {
  /** Counts the request as under way from its last byte until its reply begins, or answers it with 503 and is true. */
  refuses(request: Request, response: GatewayResponse): boolean;
  stop(): void;
}

const overloaded = new HttpError(
  503,
  'overloaded',
  'There is too much to do; Retry-After says when to come again.',
);

/** The processor time of this thread, in ms. */
function usedMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/**
 * Refuses what this process has no time for, so that what it takes on is answered in time. While its event loop is late,
 * all that it has under way waits for the one core, and the fewer that are the sooner each has its turn: so the number of
 * requests under way is limited by how much too late the loop is (a gradient, as in Netflix's concurrency-limits). How
 * long services take does not count. While other processes have the core, as when they start, a moment's backlog is no
 * overload: more are let in. Refusing must cost next to nothing: no token, no limit, no log line.
 */
export function createLoadShedding(
  { requestsShed }: GatewayMetrics,
  corsHeaders: CorsHeaders,
  drainMs: number,
  mayBeLateMs: number,
): LoadShedding {
  const underWay = new Set<GatewayResponse>();
  let limit = most;
  let lookedAt = performance.now();
  let windowStart = lookedAt;
  /** The least of the window: a queue that is gone once in it does not stand. */
  let leastLate = Infinity;
  let looks = 0;
  let used = usedMs();
  /** Which part of a core this thread has had lately. */
  let busy = 0;

  function weighBusy(elapsedMs: number): void {
    const before = used;
    used = usedMs();
    busy += ((used - before) / elapsedMs - busy) * (1 - Math.exp(-elapsedMs / busyOverMs));
  }

  function look(): void {
    const now = performance.now();
    // A reply that has begun waits for its client, or for nothing but bytes.
    for (const response of underWay) if (response.headersSent) underWay.delete(response);
    leastLate = Math.min(leastLate, now - lookedAt - lookEveryMs);
    lookedAt = now;
    looks += 1;
    if (now < windowStart + windowMs || looks < 2) return;
    weighBusy(now - windowStart);
    const gradient = Math.min(fastest, Math.max(slowest, mayBeLateMs / Math.max(leastLate, 1)));
    const from = gradient < 1 ? Math.min(limit, underWay.size) : limit;
    const least = busy < leastBusy ? fewestKeptWaiting : fewest;
    limit = Math.min(most, Math.max(least, from * gradient));
    leastLate = Infinity;
    looks = 0;
    windowStart = now;
  }
  const timer = setInterval(look, lookEveryMs).unref();

  function enter(response: GatewayResponse): void {
    if (response.destroyed) return;
    underWay.add(response);
    const leave = () => underWay.delete(response);
    // Emitted when the whole reply has been written, before the client has taken it; not each reply comes so far.
    response.once('prefinish', leave);
    response.once('close', leave);
  }

  function refuse(request: Request, response: GatewayResponse): void {
    requestsShed.inc();
    const id = requestId(request.headers['x-request-id'] as string | undefined);
    const body = JSON.stringify(envelope(overloaded, id));
    const stillComing = hasBody(request) && !request.complete;
    response.writeHead(overloaded.status, {
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': body.length,
      'Cache-Control': 'no-store',
      'Retry-After': '1',
      'X-Content-Type-Options': 'nosniff',
      'X-Request-Id': id,
      Vary: 'Origin',
      ...corsHeaders(request),
      ...(stillComing ? { Connection: 'close' } : {}),
    });
    if (!stillComing) return void response.end(body);
    response.write(body);
    endAfterBody(request, response, drainMs);
  }

  return {
    refuses(request, response) {
      if (underWay.size >= limit && request.url !== health.path) {
        refuse(request, response);
        return true;
      }
      // Only who waits for us counts, or slow clients would have all others refused: not who still sends, or reads.
      if (hasBody(request)) request.once('end', () => enter(response));
      else enter(response);
      return false;
    },
    stop: () => clearInterval(timer),
  };
}
