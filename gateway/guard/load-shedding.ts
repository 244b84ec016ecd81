import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { HttpError, requestId } from '@content-platform/chassis';
import { sendError } from '../replies/errors.ts';
import type { GatewayRequest, GatewayResponse } from '../request-context.ts';
import type { GatewayMetrics } from '../metrics.ts';
import type { CorsHeaders } from './access.ts';

/** Requests that begin in one turn of the event loop. Turns must be short: Node reads once in each of them. */
const maxPerTurn = 16;
/** A full queue is answered in this time, so that its last request is answered within 500 ms. */
const maxWaitMs = 400;
const minQueue = 64;
/** A queue that was empty within the last `burstMs` may be this long: a process that got no CPU then catches up. */
const burstQueue = 400;
const burstMs = 1_000;
/** Rate at which requests leave the queue, in requests per ms, that is assumed before the first measurement. */
const firstRate = 2;
/** Duration of one measurement in ms. The rate is a moving average of measurements. */
const measureMs = 100;
/** Weight of the newest measurement. It is small, because a pause of the process spoils a whole measurement. */
const newestShare = 0.18;

interface LoadSheddingOptions {
  /** Begins to work on a request that arrived at `arrivedAt` (performance.now()). */
  begin: (response: GatewayResponse, arrivedAt: number) => void;
  metrics: GatewayMetrics;
  corsHeaders: CorsHeaders;
  drainMs: number;
  /** Whether a request neither waits nor is refused, if `begun` requests have begun in this turn of the event loop. */
  isExempt: (request: GatewayRequest, begun: number) => boolean;
  /** Whether clients share connections, as behind a proxy: then a refusal must not delay other requests. */
  areConnectionsShared: boolean;
}

const overloadedMessage = 'The server is overloaded. Wait for the number of seconds in Retry-After.';
const overloaded = new HttpError('overloaded', overloadedMessage, { headers: { 'Retry-After': '1' } });

/** Measures the rate at which requests leave the queue. Only turns of the event loop after which others wait count. */
function createRateMeter() {
  let rate = firstRate;
  let begun = 0;
  let elapsed = 0;
  return {
    /** Notes a turn of the event loop that took `ms`, and in which `maxPerTurn` requests left the queue. */
    note(ms: number): void {
      begun += maxPerTurn;
      elapsed += ms;
      if (elapsed < measureMs) return;
      rate += (begun / elapsed - rate) * newestShare;
      begun = 0;
      elapsed = 0;
    },
    get: () => rate,
  };
}

/** The Retry-After of a refusal: the connection is not read for this time. */
const pauseMs = 1_000;
/** The longest pause, if the client did not wait for Retry-After. Clients of the benchmark time out after 5 s. */
const longPauseMs = 4_000;
const checkIntervalMs = 10;
/** Paused connections are read again while the queue has fewer requests than this share of its limit. */
const wakeShare = 1 / 2;
/** A late request waited unread for a whole pause. It is refused if the queue exceeds this share of its limit. */
const lateShare = 1 / 4;
/** Maximum number of connections that are read again in one check. */
const maxPerCheck = 40;

/** A connection, and performance.now() at which it is read again. */
type Pause = [socket: Socket, until: number];

/**
 * Connections with a refused request: the gateway pauses reading them. It reads them again when this pause is over or,
 * earlier, if the queue has `room()` for their requests.
 */
export function createPausedConnections(room: () => number) {
  /** The connections with a normal and with a long pause, in the order in which their pauses end. */
  const normal: Pause[] = [];
  const long: Pause[] = [];
  /** The connections that are read again in this turn of the event loop, and whether their pause was over. */
  const woken = new Map<Socket, boolean>();
  /** The last refusal of each connection. Not its response, which would stay in memory during the pause. */
  const latest = new WeakMap<Socket, object>();
  let timer: NodeJS.Timeout | undefined;

  function wake(): void {
    const now = performance.now();
    const resume = ([socket]: Pause, isOver: boolean) => {
      if (!socket.destroyed) woken.set(socket.resume(), isOver);
    };
    for (const pauses of [normal, long])
      while (woken.size < maxPerCheck && (pauses[0]?.[1] ?? Infinity) <= now) resume(pauses.shift()!, true);
    const most = Math.min(maxPerCheck, room());
    // The latest first: their clients have waited least, and still get their replies in time.
    for (const pauses of [normal, long])
      while (woken.size < most && pauses.length > 0) resume(pauses.pop()!, false);
    setImmediate(() => woken.clear());
    if (normal.length + long.length === 0) stop();
  }

  /** Spreads the ends of long pauses: connections that were refused together would otherwise be read together again. */
  function endOfLongPause(now: number): number {
    const apart = longPauseMs / (normal.length + long.length + 1);
    return Math.min(now + longPauseMs, Math.max(now + pauseMs, (long.at(-1)?.[1] ?? now) + apart));
  }

  function stop(): void {
    clearInterval(timer);
    timer = undefined;
  }

  return {
    /** Whether the request has waited for a whole pause: it is late already, so it is refused sooner. */
    isLate: (socket: Socket): boolean => woken.get(socket) === true,

    /** Stops reading a connection once the reply of a refused request is sent. */
    add(socket: Socket, response: ServerResponse): void {
      const refusal = {};
      latest.set(socket, refusal);
      const wasJustWoken = woken.has(socket);
      // pause() must follow the end of the reply, because Node then resumes reading.
      response.once('close', () => {
        if (socket.destroyed || socket.writableEnded || latest.get(socket) !== refusal) return;
        socket.pause();
        const now = performance.now();
        if (wasJustWoken) long.push([socket, endOfLongPause(now)]);
        else normal.push([socket, now + pauseMs]);
        timer ??= setInterval(wake, checkIntervalMs).unref();
      });
    },

    stop,
  };
}

/**
 * Keeps replies in time under overload: few requests begin in each turn of the event loop, and others wait, the oldest
 * first. If the queue is full, a request is refused without further checks. The gateway then pauses reading its
 * connection: a refusal costs at least a third of an answer, so refusing clients that retry immediately would use the
 * whole core.
 */
export function createLoadShedding(options: LoadSheddingOptions) {
  const { begin, metrics, corsHeaders, drainMs, isExempt, areConnectionsShared } = options;
  /** The replies of waiting requests and their times of arrival, the oldest first. */
  const queue: { response: GatewayResponse; arrivedAt: number }[] = [];
  const rate = createRateMeter();
  /** Requests that have begun in this turn of the event loop. */
  let begun = 0;
  let isScheduled = false;
  /** Whether `maxPerTurn` requests left the queue in the last turn. */
  let wasFull = false;
  /** When the queue was last empty. */
  let emptyAt = 0;

  const queueLimit = () => Math.max(minQueue, rate.get() * maxWaitMs);
  const paused = createPausedConnections(() => queueLimit() * wakeShare - queue.length);

  function beginNow(response: GatewayResponse, arrivedAt: number): void {
    begun += 1;
    schedule();
    begin(response, arrivedAt);
  }

  /** Begins the next requests after this turn of the event loop has handled the replies that arrived from services. */
  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    const start = performance.now();
    setImmediate(() => {
      isScheduled = false;
      // Only turns after a full turn count: the first turn of a burst is short, as it contains no services' replies.
      if (wasFull && queue.length > 0) rate.note(performance.now() - start);
      begun = 0;
      while (begun < maxPerTurn && queue.length > 0) {
        const { response, arrivedAt } = queue.shift()!;
        if (!response.destroyed) beginNow(response, arrivedAt);
      }
      wasFull = begun >= maxPerTurn;
      if (queue.length > 0) schedule();
    });
  }

  /** Whether the next request is refused. A late request leaves room for those that can be answered in time. */
  function isFull(now: number, isLate: boolean): boolean {
    if (now - emptyAt < burstMs && queue.length < burstQueue) return false;
    return queue.length >= queueLimit() * (isLate ? lateShare : 1);
  }

  function refuse(request: GatewayRequest, response: GatewayResponse): void {
    metrics.requestsShed.inc();
    const headers = { Vary: 'Origin', ...corsHeaders(request) };
    const id = requestId(request.headers['x-request-id'] as string | undefined);
    if (!areConnectionsShared) paused.add(request.socket, response);
    sendError(response, overloaded, id, drainMs, headers);
  }

  return {
    admit(request: GatewayRequest, response: GatewayResponse): void {
      const now = performance.now();
      const isFree = queue.length === 0 && begun < maxPerTurn;
      if (isFree || isExempt(request, begun)) return beginNow(response, now);
      if (queue.length === 0) emptyAt = now;
      if (isFull(now, paused.isLate(request.socket))) return refuse(request, response);
      queue.push({ response, arrivedAt: now });
      schedule();
    },
    stop: paused.stop,
  };
}
