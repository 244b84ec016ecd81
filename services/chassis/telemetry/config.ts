import { basename, dirname } from 'node:path';

/** Traces go to a collector, under the name of this process. */
export interface TelemetryConfig {
  service: string;
  /** How many of the requests that are neither slow nor fail are sent, of 1. */
  ratio: number;
}

const usualRatio = 0.05;

/**
 * What the preload has to know before the process reads its own configuration; undefined: nothing is traced. What is no
 * address or no number is for that configuration to complain of.
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
    ratio: ratio ? Number(ratio) : usualRatio,
  };
}
