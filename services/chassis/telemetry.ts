// The preload of every process: `node --import ./services/chassis/telemetry.ts services/auth/main.ts`. It sends
// traces to OTEL_EXPORTER_OTLP_ENDPOINT; without that setting OpenTelemetry's SDK is not loaded.
import { readTelemetryConfig } from './telemetry/config.ts';

const config = readTelemetryConfig();
if (config) {
  const { startTelemetry } = await import('./telemetry/start.ts');
  startTelemetry(config);
}
