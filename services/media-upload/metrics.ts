import type { StatsFs } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { Counter, Gauge } from 'prom-client';
import { durations, type Metrics } from '@content-platform/chassis';

/**
 * existing: the user already had the file. refused: 4xx. busy: 503, overload or an unavailable dependency. hung_up: the
 * client disconnected. failed: any other error.
 */
const uploadOutcomes = ['created', 'existing', 'refused', 'busy', 'hung_up', 'failed'] as const;
export type UploadOutcome = (typeof uploadOutcomes)[number];

export type UploadMetrics = ReturnType<typeof createUploadMetrics>;

/** @param folder MEDIA_FOLDER, whose disk is measured at each scrape */
export function createUploadMetrics({ registry }: Metrics, folder: string) {
  const registers = [registry];
  const uploads = new Counter({
    name: 'uploads_total',
    help: 'Uploads by how they ended',
    labelNames: ['outcome'],
    registers,
  });
  const processing = durations(registry, {
    name: 'upload_processing_seconds',
    help: 'Time of inspecting a file and creating its variants, without the wait for a worker process',
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20],
  });
  const gauge = (name: string, help: string, valueOf: (disk: StatsFs) => number) => {
    const metric: Gauge = new Gauge({
      name,
      help,
      registers,
      collect: async () => metric.set(valueOf(await statfs(folder))),
    });
  };
  gauge(
    'media_folder_free_bytes',
    'Free bytes of the disk with MEDIA_FOLDER',
    (disk) => disk.bavail * disk.bsize,
  );
  gauge(
    'media_folder_size_bytes',
    'Size in bytes of the disk with MEDIA_FOLDER',
    (disk) => disk.blocks * disk.bsize,
  );
  for (const outcome of uploadOutcomes) uploads.inc({ outcome }, 0);
  return { uploads, processing };
}
