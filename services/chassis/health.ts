import express, { type Express, type RequestHandler } from 'express';
import { expose } from './exposition.ts';
import type { Metrics } from './metrics.ts';

export interface Check {
  /** Without it the process cannot do its job: not ready. Otherwise it is `degraded`, and ready. */
  required: boolean;
  /** Rejects when the dependency is away. */
  check: () => Promise<unknown>;
}

const checkTimeoutMs = 1_000;

async function outcome(check: Check['check']): Promise<'ok' | 'away'> {
  const timeout = new Promise<'away'>((resolve) => setTimeout(resolve, checkTimeoutMs, 'away').unref());
  const result = Promise.resolve()
    .then(check)
    .then(
      () => 'ok' as const,
      () => 'away' as const,
    );
  return Promise.race([result, timeout]);
}

/** The internal listener's application: /metrics, /health/live, /health/ready, and what a service adds. */
export function createInternalApp(
  metrics: Metrics,
  checks: () => Record<string, Check>,
  isUp: () => boolean,
  more: () => RequestHandler | undefined = () => undefined,
): Express {
  const app = express();
  app.disable('x-powered-by');
  app.get('/metrics', (request, response, next) => {
    const scrape = expose(metrics.registry, request.get('accept'));
    scrape.then(({ contentType, text }) => response.set('Content-Type', contentType).end(text), next);
  });
  app.get('/health/live', (_request, response) => {
    response.json({ status: 'ok' });
  });
  app.get('/health/ready', async (_request, response) => {
    const entries = Object.entries(checks());
    const outcomes = await Promise.all(
      entries.map(async ([name, { check }]) => [name, await outcome(check)] as const),
    );
    const missing = entries.some(([, { required }], index) => required && outcomes[index]![1] === 'away');
    const degraded = outcomes.some(([, result]) => result === 'away');
    const ready = isUp() && !missing;
    response.status(ready ? 200 : 503).json({
      status: !ready ? 'unavailable' : degraded ? 'degraded' : 'ok',
      checks: Object.fromEntries(outcomes),
    });
  });
  app.use((request, response, next) => {
    const handler = more();
    if (handler) void handler(request, response, next);
    else next();
  });
  return app;
}
