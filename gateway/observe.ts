import {
  actorOf,
  type Logger,
  endRequestSpan,
  inSpan,
  methodLabel,
  observe,
  statusOf,
  type SlowLog,
} from '@content-platform/chassis';
import { rateLimitAddress } from './guard/request-head.ts';
import { type RequestContext, onFinished, type Step } from './request-context.ts';
import type { GatewayMetrics } from './metrics.ts';

const windowMs = 60_000;
/** At this number of 401 replies to one address in a window, one line is logged. An expired token causes one or two. */
const repeated = 10;
/** 403 replies to one caller within the window that are logged: otherwise a user could fill the disk with log lines. */
const maxForbidden = 30;
/** Above this number of keys within a window, further addresses are neither counted nor logged; callers always are. */
const maxCounted = 10_000;

interface Refusal {
  method: string;
  route: string;
  status: number;
}

/** Returns a function that logs refusals (ASVS 5.0 16.3.2): 403 with their caller, and repeated 401. `now` in ms. */
export function createRefusalLog(logger: Logger, now: () => number = () => performance.now()) {
  let counts = new Map<string, number>();
  let since = now();

  function count(key: string, isCaller = false): number {
    if (now() - since > windowMs) [counts, since] = [new Map(), now()];
    if (!isCaller && !counts.has(key) && counts.size >= maxCounted) return Infinity;
    const times = (counts.get(key) ?? 0) + 1;
    counts.set(key, times);
    return times;
  }

  return ({ requestId, caller, address }: RequestContext, { method, route, status }: Refusal): void => {
    const fields = { request_id: requestId, address, method, route };
    if (status === 403) {
      const who = caller && actorOf(caller);
      const times = count(`403 ${who ?? rateLimitAddress(address)}`, who !== undefined);
      if (times <= maxForbidden) logger.info({ ...fields, caller: who }, 'a request was forbidden');
      if (times === maxForbidden) {
        const message = `${maxForbidden} requests of one caller were refused with 403 within a minute; further ones are not logged`;
        logger.warn({ address, caller: who }, message);
      }
    } else if (status === 401 && count(`401 ${rateLimitAddress(address)}`) === repeated) {
      logger.warn(fields, `${repeated} requests of one address were refused with 401 within a minute`);
    }
  };
}

/** Parses a service's Server-Timing header: `db;dur=12.3;desc="2", cache;desc="hit"`. */
export function parseServerTiming(value = '') {
  const database = /(?:^|,\s*)db;dur=([\d.]{1,20});desc="(\d{1,9})"/.exec(value);
  const cache = /(?:^|,\s*)cache;desc="(\w{1,20})"/.exec(value);
  return {
    database_ms: database ? Number(database[1]) : undefined,
    database_calls: database ? Number(database[2]) : undefined,
    cache: cache?.[1],
  };
}

export interface ObserveOptions {
  metrics: GatewayMetrics;
  logger: Logger;
  slowLog: SlowLog;
  slowRequestMs: number;
}

/** Creates the step that observes the duration of a sent reply and writes a log line, and a slow log row if it was slow. */
export function createObserver({ metrics, logger, slowLog, slowRequestMs }: ObserveOptions): Step {
  const noteRefusal = createRefusalLog(logger);
  return (request, response) => {
    const context = response.locals;
    const report = () => {
      const endedAt = context.answeredAt ?? performance.now();
      const ms = endedAt - context.startedAt;
      // Below 0 if an upload was refused while it arrived: its body ends after its reply, or never.
      const replyMs = endedAt - (context.bodyEndedAt ?? Infinity);
      // An upload arrives as fast as the client's network allows, so the time after its last byte decides.
      const judgedMs = context.bodyStream ? replyMs : ms;
      const status = statusOf(response);
      const route = context.endpoint?.path ?? 'unknown';
      const method = methodLabel(request.method);
      const { requestId, span, caller, address, endpoint, path } = context;
      const traceId = span?.traceId;
      span?.rename(`${method} ${route}`);
      span?.set({ 'http.request.method': method, 'http.route': route, request_id: requestId });
      if (judgedMs > slowRequestMs) span?.forceSampling();
      endRequestSpan(span, status);
      const labels = { service: metrics.service, method, route, status: String(status) };
      // Not preflights: browsers send one for each URL, and they are fast: slow and failed requests would weigh half.
      if (method !== 'OPTIONS') observe(metrics.requestDuration, labels, ms / 1000, span?.sentTraceId);
      if (replyMs >= 0) observe(metrics.responseDuration, labels, replyMs / 1000, span?.sentTraceId);
      const fields = { request_id: requestId, trace_id: traceId, method, route, status, ms: Math.round(ms) };
      if (status >= 500) logger.info(fields, 'request');
      else if (logger.isLevelEnabled('debug')) {
        const more = { address, caller: caller && actorOf(caller), path: endpoint && path };
        logger.debug({ ...fields, ...more }, 'request');
      }
      noteRefusal(context, { method, route, status });
      if (judgedMs <= slowRequestMs) return;
      metrics.slowRequests.inc({ route });
      slowLog.request({
        method,
        route,
        status,
        duration_ms: judgedMs,
        request_id: requestId,
        trace_id: traceId,
        user_id: caller?.kind === 'user' ? String(caller.id) : caller?.clientId,
        ...parseServerTiming(context.serverTiming),
      });
    };
    // Without inSpan, `report` could log in the trace of the request that opened the connection to the service.
    onFinished(response, () => inSpan(context.span, report));
  };
}
