import {
  endRequestSpan,
  methodLabel,
  observe,
  statusOf,
  type Logger,
  type SlowLog,
} from '@content-platform/chassis';
import type { GatewayMetrics } from './metrics.ts';
import { createRefusalLog } from './guard/refusal-log.ts';
import { onFinished, type EarlyStep, type RequestContext } from './request-context.ts';

/** Parses a service's Server-Timing header: `db;dur=12.3;desc="2", cache;desc="hit"`. */
export function parseServerTiming(value = '') {
  const database = /(?:^|,\s*)db;dur=([\d.]{1,20});desc="(\d{1,9})"/.exec(value);
  const cache = /(?:^|,\s*)cache;desc="(\w{1,20})"/.exec(value);
  return {
    databaseMs: database ? Number(database[1]) : undefined,
    databaseCalls: database ? Number(database[2]) : undefined,
    cache: cache?.[1],
  };
}

export interface ObserveOptions {
  metrics: GatewayMetrics;
  logger: Logger;
  slowLog: SlowLog;
  slowRequestMs: number;
}

function userIdOf({ caller }: RequestContext): string | undefined {
  return caller?.kind === 'user' ? String(caller.id) : caller?.clientId;
}

/** Creates the step that observes the duration of a sent reply and writes a log line, and a slow log row if it was slow. */
export function createObserver({ metrics, logger, slowLog, slowRequestMs }: ObserveOptions): EarlyStep {
  const noteRefusal = createRefusalLog(logger);
  return (request, response) => {
    const context = response.locals;
    onFinished(response, () => {
      const endedAt = context.answeredAt ?? performance.now();
      const ms = endedAt - context.startedAt;
      const status = statusOf(response);
      const route = context.endpoint?.path ?? 'unknown';
      const method = methodLabel(request.method);
      const { requestId, span } = context;
      const traceId = span?.traceId;
      span?.rename(`${method} ${route}`);
      span?.set({ 'http.request.method': method, 'http.route': route, request_id: requestId });
      if (ms > slowRequestMs) span?.forceSampling();
      endRequestSpan(span, status);
      const labels = { service: metrics.service, method, route, status: String(status) };
      observe(metrics.requestDuration, labels, ms / 1000, span?.sentTraceId);
      // Not observed: an upload that was refused while it arrived ends after its reply.
      const bodyEndedAt = context.bodyEndedAt ?? Infinity;
      if (bodyEndedAt <= endedAt) {
        observe(metrics.responseDuration, labels, (endedAt - bodyEndedAt) / 1000, span?.sentTraceId);
      }
      logger[status >= 500 ? 'info' : 'debug'](
        { request_id: requestId, trace_id: traceId, method, route, status, ms: Math.round(ms) },
        'request',
      );
      noteRefusal(context, { method, route, status });
      if (ms <= slowRequestMs) return;
      metrics.slowRequests.inc({ route });
      const timing = parseServerTiming(context.serverTiming);
      slowLog.request({
        method,
        route,
        status,
        ms,
        requestId,
        traceId,
        userId: userIdOf(context),
        ...timing,
      });
    });
  };
}
