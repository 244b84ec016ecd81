import { SamplingDecision } from '@opentelemetry/api';
import { setGlobalErrorHandler } from '@opentelemetry/core';
import { envDetector, hostDetector, serviceInstanceIdDetector } from '@opentelemetry/resources';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { createLogger } from '../logger.ts';
import { useTracer } from '../tracing.ts';
import { createComplaint } from './complaint.ts';
import type { TelemetryConfig } from './config.ts';
import { traceRedis } from './redis.ts';
import { createSender } from './sender.ts';
import { createTracer } from './tracer.ts';

/**
 * Traces this process. The SDK reads the rest from its own variables (OTEL_EXPORTER_OTLP_*, OTEL_BSP_*,
 * OTEL_RESOURCE_ATTRIBUTES). Its queue is bounded: what does not fit is dropped.
 */
export function startTelemetry({ service, ratio }: TelemetryConfig): void {
  setGlobalErrorHandler(createComplaint(createLogger(service)));
  const { ids, send } = createSender();
  const sdk = new NodeSDK({
    serviceName: service,
    idGenerator: ids,
    // Chosen already.
    sampler: { shouldSample: () => ({ decision: SamplingDecision.RECORD_AND_SAMPLED }) },
    // Ours read and write traceparent themselves.
    textMapPropagator: null,
    // The usual ones also tell the command line, the user and the folders of the machine.
    resourceDetectors: [envDetector, hostDetector, serviceInstanceIdDetector],
    // Metrics are scraped, and logs are on stdout.
    metricReaders: [],
    logRecordProcessors: [],
  });
  sdk.start();
  useTracer(createTracer({ ratio, send, shutdown: () => sdk.shutdown() }));
  traceRedis();
}
