import { statfs } from 'node:fs/promises';
import type { Metrics } from '@content-platform/chassis';

/**
 * existing: the user already had the file. refused: 4xx, also for a file that crashed its worker process. busy: 503,
 * overload or an unavailable dependency. hung_up: the client disconnected. failed: any other error.
 */
const uploadOutcomes = ['created', 'existing', 'refused', 'busy', 'hung_up', 'failed'] as const;
export type UploadOutcome = (typeof uploadOutcomes)[number];

export type UploadMetrics = ReturnType<typeof createUploadMetrics>;

/** @param folder MEDIA_FOLDER, whose disk is measured at each scrape */
export function createUploadMetrics({ counter, durations, measured }: Metrics, folder: string) {
  const uploads = counter('uploads_total', 'Uploads by how they ended', 'outcome');
  const processing = durations(
    'upload_processing_seconds',
    'Time of inspecting a file and creating its variants, without the wait for a worker process',
    [0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20],
  );
  const disk = async (blocks: 'bavail' | 'blocks') => {
    const stats = await statfs(folder);
    return stats[blocks] * stats.bsize;
  };
  measured('media_folder_free_bytes', 'Free bytes of the disk with MEDIA_FOLDER', () => disk('bavail'));
  measured('media_folder_size_bytes', 'Size in bytes of the disk with MEDIA_FOLDER', () => disk('blocks'));
  for (const outcome of uploadOutcomes) uploads.inc({ outcome }, 0);
  return { uploads, processing };
}
