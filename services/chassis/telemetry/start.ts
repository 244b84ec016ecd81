import { SamplingDecision } from '@opentelemetry/api';
import { setGlobalErrorHandler } from '@opentelemetry/core';
import { envDetector, hostDetector, serviceInstanceIdDetector } from '@opentelemetry/resources';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { createLogger } from '../logger.ts';
import { setTracer } from '../tracing.ts';
import { createThrottledWarning } from './throttled-warning.ts';
import type { TelemetryConfig } from './config.ts';
import { traceRedis } from './redis.ts';
import { createSender } from './sender.ts';
import { createTracer } from './tracer.ts';

/**
 * Starts tracing this process. The SDK reads the other settings from its own variables (OTEL_EXPORTER_OTLP_*, OTEL_BSP_*,
 * OTEL_RESOURCE_ATTRIBUTES). Its queue is bounded: further spans are dropped.
 */
export function startTelemetry({ service, ratio }: TelemetryConfig): void {
  setGlobalErrorHandler(createThrottledWarning(createLogger(service)));
  const { ids, send } = createSender();
  const sdk = new NodeSDK({
    serviceName: service,
    idGenerator: ids,
    // The tracer has already sampled the spans.
    sampler: { shouldSample: () => ({ decision: SamplingDecision.RECORD_AND_SAMPLED }) },
    // The tracer reads and writes traceparent itself.
    textMapPropagator: null,
    // The default detectors also send the command line, the user and folders of the machine.
    resourceDetectors: [envDetector, hostDetector, serviceInstanceIdDetector],
    // Prometheus scrapes the metrics, and logs go to stdout.
    metricReaders: [],
    logRecordProcessors: [],
  });
  sdk.start();
  setTracer(createTracer({ ratio, send, shutdown: () => sdk.shutdown() }));
  traceRedis();
}
