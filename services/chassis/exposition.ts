import { Registry, type Metric, type OpenMetricsContentType } from 'prom-client';

interface Exposition {
  contentType: string;
  text: string;
}

/**
 * The same metrics as OpenMetrics. prom-client then removes `_total` from a counter's name permanently, so it gets copies
 * that inherit from the metrics.
 */
function openMetrics(registry: Registry): Registry<OpenMetricsContentType> {
  const open = new Registry<OpenMetricsContentType>();
  open.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  for (const metric of registry.getMetricsAsArray()) {
    open.registerMetric(Object.create(metric) as Metric);
  }
  return open;
}

/** prom-client's JSON, which the pulse service reads without a parser. */
async function json(registry: Registry): Promise<Exposition> {
  return { contentType: 'application/json', text: JSON.stringify(await registry.getMetricsAsJSON()) };
}

/** Renders the metrics in the format of `accept`: JSON, OpenMetrics (the only format with exemplars) or plain text. */
export async function expose(registry: Registry, accept = ''): Promise<Exposition> {
  if (accept === 'application/json') return json(registry);
  const asked = accept.includes('application/openmetrics-text') ? openMetrics(registry) : registry;
  return { contentType: asked.contentType, text: await asked.metrics() };
}
