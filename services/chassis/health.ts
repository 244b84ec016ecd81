import { Registry, type Metric, type OpenMetricsContentType } from 'prom-client';
import express from 'express';
import type { Metrics } from './metrics.ts';
import { withTimeout } from './concurrency.ts';

/** Returns copies to render as OpenMetrics: prom-client removes `_total` from the names of the counters it renders. */
function openMetrics(registry: Registry): Registry<OpenMetricsContentType> {
  const open = new Registry<OpenMetricsContentType>();
  open.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  for (const metric of registry.getMetricsAsArray()) {
    open.registerMetric(Object.create(metric) as Metric);
  }
  return open;
}

/** Renders the metrics in the format of `accept`: JSON, OpenMetrics (the only format with exemplars) or plain text. */
export async function expose(registry: Registry, accept = '') {
  // The pulse service reads prom-client's JSON without a parser of its own.
  if (accept === 'application/json')
    return { contentType: accept, text: JSON.stringify(await registry.getMetricsAsJSON()) };
  const source = accept.includes('application/openmetrics-text') ? openMetrics(registry) : registry;
  return { contentType: source.contentType, text: await source.metrics() };
}

export interface Check {
  /** If a required check fails, the process is not ready. If another check fails, it is ready and `degraded`. */
  required: boolean;
  /** Rejects when the dependency is unavailable. */
  check: () => Promise<unknown>;
}

type Outcome = 'ok' | 'unavailable';

interface Readiness {
  outcomes: Record<string, Outcome>;
  /** Names of the required checks that failed; empty: the process is ready. */
  failing: string[];
}
export type ReadinessCheck = () => Promise<Readiness>;

const checkTimeoutMs = 1_000;
/** Every gateway probes each process once a second; they share one round of checks. */
const reuseMs = 1_000;

async function outcome(check: Check['check']): Promise<Outcome> {
  const passed = (async () => check())().then(() => true);
  return (await withTimeout(passed, checkTimeoutMs).catch(() => false)) ? 'ok' : 'unavailable';
}

/**
 * Runs `checks`, each for at most a second, in one round at a time. A round that passed is reused for a second; after
 * a failed one the next call checks again, so that a process becomes ready without delay.
 */
export function createReadinessCheck(checks: Record<string, Check>): ReadinessCheck {
  let latest: Promise<Readiness> | undefined;

  async function runChecks(): Promise<Readiness> {
    const entries = await Promise.all(
      Object.entries(checks).map(async ([name, { check }]) => [name, await outcome(check)] as const),
    );
    const failing = entries
      .filter(([name, result]) => checks[name]!.required && result === 'unavailable')
      .map(([name]) => name);
    const discard = () => (latest = undefined);
    if (failing.length > 0) discard();
    else setTimeout(discard, reuseMs).unref();
    return { outcomes: Object.fromEntries(entries), failing };
  }
  return () => (latest ??= runChecks());
}

/**
 * The internal listener's application: /metrics, /health/live and /health/ready; a service may add endpoints. `up`: the
 * process accepts requests.
 */
export function createInternalApp(metrics: Metrics, check: () => Promise<Readiness & { up: boolean }>) {
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
    const { outcomes: checks, failing, up } = await check();
    const ready = up && failing.length === 0;
    const degraded = Object.values(checks).includes('unavailable');
    const status = !ready ? 'unavailable' : degraded ? 'degraded' : 'ok';
    response.status(ready ? 200 : 503).json({ status, checks });
  });
  return app;
}
