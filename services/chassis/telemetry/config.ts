import { basename, dirname } from 'node:path';

export interface TelemetryConfig {
  /** Name of this process in its traces. */
  service: string;
  /** Part of the requests that are neither slow nor failed whose traces are sent, 0 to 1. */
  ratio: number;
}

const defaultRatio = 0.05;

/**
 * Reads the settings that the preload needs before the process reads its configuration; undefined: no tracing. It ignores
 * malformed values, because the process's own configuration refuses them with a message.
 */
export function readTelemetryConfig(): TelemetryConfig | undefined {
  const {
    OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    OTEL_SERVICE_NAME: service,
    OTEL_TRACES_SAMPLER_ARG: ratio,
  } = process.env;
  if (!endpoint || !URL.canParse(endpoint)) return undefined;
  return {
    // `services/auth/main.ts` is auth.
    service: service || basename(dirname(process.argv[1] ?? '')),
    ratio: ratio ? Number(ratio) : defaultRatio,
  };
}
