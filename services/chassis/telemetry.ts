// The preload of every process: `node --import ./services/chassis/telemetry.ts services/auth/main.ts`. It sends
// traces to OTEL_EXPORTER_OTLP_ENDPOINT; without that setting OpenTelemetry's SDK is not loaded. It ignores malformed
// values, because the process's own configuration refuses them with a message.
import { readTelemetryConfig } from './telemetry/config.ts';

const { endpoint, service, ratio } = readTelemetryConfig();
if (endpoint && URL.canParse(endpoint)) {
  const { startTelemetry } = await import('./telemetry/start.ts');
  startTelemetry(service, ratio);
}
