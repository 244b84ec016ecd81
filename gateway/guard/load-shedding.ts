import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { hasBody, HttpError, requestId } from '@content-platform/chassis';
import { sendError } from '../replies/errors.ts';
import type { GatewayRequest, GatewayResponse } from '../request-context.ts';
import type { GatewayMetrics } from '../metrics.ts';
import type { CorsHeaders } from './browser-headers.ts';

/** Requests that begin in one turn of the event loop. Turns must be short: Node reads once in each of them. */
const maxPerTurn = 16;
/** A full queue is answered in this time, so that its last request is answered within 500 ms. */
const maxWaitMs = 400;
const minQueue = 64;
/** The rate at which requests leave the queue, per ms: its value before the first measurement. */
const firstRate = 2;
/** The rate is a moving average over this time, of measurements that take this long. */
const rateOverMs = 500;
const measureMs = 100;

/** Begins to work on a request that arrived at `arrivedAt` (performance.now()). */
type Begin = (request: GatewayRequest, response: GatewayResponse, arrivedAt: number) => void;

interface LoadShedding {
  admit(request: GatewayRequest, response: GatewayResponse): void;
  stop(): void;
}

interface LoadSheddingOptions {
  begin: Begin;
  metrics: GatewayMetrics;
  corsHeaders: CorsHeaders;
  drainMs: number;
  /** Whether a request neither waits nor is refused. */
  isExempt: (request: GatewayRequest) => boolean;
  /** Whether clients share connections, as behind a proxy: then a refusal must not delay other requests. */
  areConnectionsShared: boolean;
}

const overloaded = new HttpError(
  'overloaded',
  'The server is overloaded. Wait for the number of seconds in Retry-After.',
  { headers: { 'Retry-After': '1' } },
);

/** Measures the rate at which requests leave a queue. Only times in which the queue was never empty count. */
function createRateMeter() {
  let rate = firstRate;
  let since = 0;
  let left = 0;
  return {
    /** The queue is no longer empty. */
    begin(now: number): void {
      since = now;
      left = 0;
    },
    note(now: number): void {
      left += 1;
      const elapsed = now - since;
      if (elapsed < measureMs) return;
      rate += (left / elapsed - rate) * (1 - Math.exp(-elapsed / rateOverMs));
      since = now;
      left = 0;
    },
    /** Requests per ms. */
    get: () => rate,
  };
}

/** The Retry-After of a refusal: the connection is not read for this time. */
const restMs = 1_000;
/** The rest of a connection whose client did not wait for Retry-After: shorter than clients wait for a reply. */
const earlyRestMs = 3_000;
const checkIntervalMs = 10;
/** Connections that are read again in one check. */
const maxPerCheck = 40;

/** Connections with a refused request. They are read again after their rest or, earlier, while `isCalm`. */
export function createRestingConnections(isCalm: () => boolean) {
  /** When each connection is read again, those that rest longest last. */
  const rests = [new Map<Socket, number>(), new Map<Socket, number>()];
  const [normal, long] = rests as [Map<Socket, number>, Map<Socket, number>];
  /** The connections that are read again in this turn of the event loop. */
  const woken = new Set<Socket>();
  /** The last request of each connection with a refusal. */
  const latest = new WeakMap<Socket, ServerResponse>();
  let timer: NodeJS.Timeout | undefined;

  function wake(): void {
    let left = maxPerCheck;
    const now = performance.now();
    for (const rest of rests) {
      for (const [socket, until] of rest) {
        if (left === 0 || (until > now && !isCalm())) break;
        left -= 1;
        rest.delete(socket);
        if (!socket.destroyed) woken.add(socket.resume());
      }
    }
    setImmediate(() => woken.clear());
    if (normal.size + long.size === 0) stop();
  }

  function stop(): void {
    clearInterval(timer);
    timer = undefined;
  }

  return {
    /** Whether the request was sent during the rest: its client has waited too long, so it is refused sooner. */
    isEarly: (socket: Socket): boolean => woken.has(socket),

    /** Stops reading a connection once the reply of a refused request is sent. */
    add(socket: Socket, response: ServerResponse): void {
      latest.set(socket, response);
      const rest = woken.has(socket) ? long : normal;
      // Not earlier: Node reads on when a reply is finished.
      response.once('close', () => {
        if (socket.destroyed || socket.writableEnded || latest.get(socket) !== response) return;
        socket.pause();
        rest.set(socket, performance.now() + (rest === long ? earlyRestMs : restMs));
        timer ??= setInterval(wake, checkIntervalMs).unref();
      });
    },

    stop,
  };
}

/**
 * Keeps replies in time under overload: few requests begin in each turn of the event loop, and others wait, the oldest
 * first. If the queue is full, a request is refused without further checks and its connection rests. Refusing every
 * request at once would use the whole core: a refusal costs a third of an answer.
 */
export function createLoadShedding(options: LoadSheddingOptions): LoadShedding {
  const { begin, metrics, corsHeaders, drainMs, isExempt, areConnectionsShared } = options;
  /** Each waiting request's reply and its time of arrival, the oldest first. */
  const queue = new Map<GatewayResponse, number>();
  const rate = createRateMeter();
  /** Requests that have begun in this turn of the event loop. */
  let begun = 0;
  let isScheduled = false;

  const queueLimit = () => Math.max(minQueue, rate.get() * maxWaitMs);
  const resting = createRestingConnections(() => queue.size < queueLimit() / 2);

  function beginNow(response: GatewayResponse, arrivedAt: number): void {
    begun += 1;
    schedule();
    begin(response.req, response, arrivedAt);
  }

  /** Begins the next requests after the replies that have arrived in this turn. */
  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      begun = 0;
      const now = performance.now();
      for (const [response, arrivedAt] of queue) {
        if (begun === maxPerTurn) break;
        queue.delete(response);
        rate.note(now);
        if (!response.destroyed) beginNow(response, arrivedAt);
      }
      if (queue.size > 0) schedule();
    });
  }

  function refuse(request: GatewayRequest, response: GatewayResponse): void {
    metrics.requestsShed.inc();
    const headers = { Vary: 'Origin', ...corsHeaders(request) };
    const id = requestId(request.headers['x-request-id'] as string | undefined);
    if (!areConnectionsShared) resting.add(request.socket, response);
    sendError(request, response, overloaded, { requestId: id, drainMs, headers });
  }

  return {
    admit(request, response) {
      const now = performance.now();
      const isFree = queue.size === 0 && begun < maxPerTurn;
      if (isFree || isExempt(request)) return beginNow(response, now);
      if (queue.size >= queueLimit() || resting.isEarly(request.socket)) return refuse(request, response);
      // A body that is still arriving is read at once, with the time limits of slow clients.
      if (hasBody(request)) return beginNow(response, now);
      if (queue.size === 0) rate.begin(now);
      queue.set(response, now);
      schedule();
    },
    stop: resting.stop,
  };
}
