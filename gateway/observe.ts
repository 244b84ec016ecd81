import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  endRequestSpan,
  methodLabel,
  observe,
  type Logger,
  type Metrics,
  type SlowLog,
} from '@content-platform/chassis';
import type { Exchange } from './exchange.ts';

/** The client went away before it had an answer: nginx's name for it. */
const clientClosed = 499;

/** Reads what a service says of its share of a request: `db;dur=12.3;desc="2", cache;desc="hit"`. */
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
  metrics: Metrics;
  logger: Logger;
  slowLog: SlowLog;
  slowRequestMs: number;
}

function userIdOf({ caller }: Exchange): string | undefined {
  return caller?.kind === 'user' ? String(caller.id) : caller?.clientId;
}

/** When the reply is out: one observation under the endpoint's template, one log line, one slow log row if it was slow. */
export function createObserver({ metrics, logger, slowLog, slowRequestMs }: ObserveOptions) {
  return (request: IncomingMessage, response: ServerResponse, exchange: Exchange): void => {
    response.once('close', () => {
      const ms = (exchange.answeredAt ?? performance.now()) - exchange.startedAt;
      const status = response.headersSent ? response.statusCode : clientClosed;
      const route = exchange.endpoint?.path ?? 'unknown';
      const method = methodLabel(request.method);
      const { requestId, span } = exchange;
      const traceId = span?.traceId;
      span?.rename(`${method} ${route}`);
      span?.set({ 'http.request.method': method, 'http.route': route, request_id: requestId });
      if (ms > slowRequestMs) span?.keep();
      endRequestSpan(span, status);
      observe(
        metrics.requestDuration,
        { service: metrics.service, method, route, status: String(status) },
        ms / 1000,
        span?.sentTraceId,
      );
      logger[status >= 500 ? 'info' : 'debug'](
        { request_id: requestId, trace_id: traceId, method, route, status, ms: Math.round(ms) },
        'request',
      );
      if (ms <= slowRequestMs) return;
      metrics.slowRequests.inc();
      const userId = userIdOf(exchange);
      slowLog.request({
        method,
        route,
        status,
        ms,
        requestId,
        traceId,
        userId,
        ...parseServerTiming(exchange.serverTiming),
      });
    });
  };
}
