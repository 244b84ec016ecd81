import { Counter } from 'prom-client';
import { durations, type Metrics } from '@content-platform/chassis';

/**
 * existing: the user already had the file. refused: 4xx. busy: 503, overload or an unavailable dependency. hung_up: the
 * client disconnected. failed: any other error.
 */
const uploadOutcomes = ['created', 'existing', 'refused', 'busy', 'hung_up', 'failed'] as const;
export type UploadOutcome = (typeof uploadOutcomes)[number];

export type UploadMetrics = ReturnType<typeof createUploadMetrics>;

export function createUploadMetrics({ registry }: Metrics) {
  const registers = [registry];
  const uploads = new Counter({
    name: 'uploads_total',
    help: 'Uploads by how they ended',
    labelNames: ['outcome'],
    registers,
  });
  const processing = durations(registry, {
    name: 'upload_processing_seconds',
    help: 'Time in which a file was looked at and its variants were made, without waiting for it',
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20],
  });
  for (const outcome of uploadOutcomes) uploads.inc({ outcome }, 0);
  return { uploads, processing };
}
