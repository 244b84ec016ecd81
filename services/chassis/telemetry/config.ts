import { basename, dirname } from 'node:path';

/** Traces go to a collector, under the name of this process. */
export interface TelemetryConfig {
  service: string;
}

/**
 * What the preload has to know before the process reads its own configuration; undefined: nothing is traced. What is no
 * address is for that configuration to complain of.
 */
export function readTelemetryConfig(): TelemetryConfig | undefined {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SERVICE_NAME: service } = process.env;
  if (!endpoint || !URL.canParse(endpoint)) return undefined;
  // `services/auth/main.ts` is auth.
  return { service: service || basename(dirname(process.argv[1] ?? '')) };
}
