import { Registry, type Metric, type OpenMetricsContentType } from 'prom-client';

export interface Exposition {
  contentType: string;
  text: string;
}

/**
 * The same metrics as OpenMetrics. In that format prom-client takes `_total` off a counter's own name, for good, which
 * the next plain scrape would lack: so each counter is stood in for.
 */
function openMetrics(registry: Registry): Registry<OpenMetricsContentType> {
  const open = new Registry<OpenMetricsContentType>();
  open.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  for (const metric of registry.getMetricsAsArray()) {
    open.registerMetric(Object.create(metric) as Metric);
  }
  return open;
}

/** As prom-client has it, for the page of targets: our own processes need no parser then. */
async function json(registry: Registry): Promise<Exposition> {
  return { contentType: 'application/json', text: JSON.stringify(await registry.getMetricsAsJSON()) };
}

/**
 * What a scrape gets: JSON where that is asked for, OpenMetrics, which alone has exemplars, where the Accept
 * header names it, as Prometheus's does; the plain text format otherwise.
 */
export async function expose(registry: Registry, accept = ''): Promise<Exposition> {
  if (accept === 'application/json') return json(registry);
  const asked = accept.includes('application/openmetrics-text') ? openMetrics(registry) : registry;
  return { contentType: asked.contentType, text: await asked.metrics() };
}
