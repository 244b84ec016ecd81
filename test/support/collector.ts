import { text } from 'node:stream/consumers';
import { startHttpServer } from './http-server.ts';

type Value = { stringValue?: string; intValue?: number | string; boolValue?: boolean };
type Attribute = { key: string; value: Value };

interface OtlpSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  /** 2 server, 3 client, 4 producer, 5 consumer. */
  kind: number;
  attributes: Attribute[];
  links?: { traceId: string; spanId: string }[];
  /** code 2: an error. */
  status: { code?: number };
}

interface Export {
  resourceSpans: {
    resource: { attributes: Attribute[] };
    scopeSpans: { spans: OtlpSpan[] }[];
  }[];
}

const record = (attributes: Attribute[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0] as unknown]));

/** The spans of an OTLP/HTTP request in JSON (opentelemetry-proto, trace/v1). */
function spansOf({ resourceSpans }: Export) {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(record(resource.attributes)['service.name']);
    return scopeSpans
      .flatMap(({ spans }) => spans)
      .map((span) => ({ ...span, service, attributes: record(span.attributes), links: span.links ?? [] }));
  });
}

export type SentSpan = ReturnType<typeof spansOf>[number];

/** Starts a collector that stores what it receives, with the environment variables for processes that send to it. */
export async function startCollector() {
  const spans: SentSpan[] = [];
  const bodies: string[] = [];
  const { origin, close } = await startHttpServer(async (request, response) => {
    const body = await text(request).catch(() => undefined);
    // The sender was killed while it sent.
    if (body === undefined) return;
    bodies.push(body);
    spans.push(...spansOf(JSON.parse(body) as Export));
    response.setHeader('Content-Type', 'application/json').end('{}');
  });
  return {
    environment: {
      OTEL_EXPORTER_OTLP_ENDPOINT: origin,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_TRACES_SAMPLER_ARG: '1',
      OTEL_BSP_SCHEDULE_DELAY: '100',
    },
    spans,
    bodies,
    stop: close,
  };
}
export type Collector = Awaited<ReturnType<typeof startCollector>>;
