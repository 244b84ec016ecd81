import { basename, dirname } from 'node:path';

const defaultRatio = 0.05;

/** Reads the settings that the preload needs before the process reads its configuration. */
export function readTelemetryConfig() {
  const {
    OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    OTEL_SERVICE_NAME: name,
    OTEL_TRACES_SAMPLER_ARG: ratio,
  } = process.env;
  // `services/auth/main.ts` is auth.
  const service = name || basename(dirname(process.argv[1] ?? ''));
  return { endpoint, service, ratio: ratio ? Number(ratio) : defaultRatio };
}
