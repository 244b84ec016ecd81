import { latencyLimits } from '@content-platform/contract';
import type { Board } from './dashboards.ts';
import { series } from './panels.ts';
import { quantiles, rates } from './queries.ts';

export const media: Board = {
  uid: 'media',
  title: 'Media',
  description: 'Uploads, image processing, downloads',
  panels: [
    series({
      title: 'What are the outcomes of uploads?',
      description:
        'Normal: created, some existing (the user has the file already) and refused (wrong type, too large). busy: too many uploads at once. failed: read the log of media-upload.',
      unit: 'ops',
      queries: rates('uploads_total', ['outcome']),
    }),
    series({
      title: 'Which share of uploads fails because of the platform?',
      description:
        'Normal: 0. Share of busy and failed in five minutes: too few worker processes, or a store is unavailable.',
      unit: 'percentunit',
      goal: { below: 0.01 },
      queries: {
        failed: 'sum(rate(uploads_total{outcome=~"busy|failed"}[5m])) / sum(rate(uploads_total[5m]))',
      },
    }).max(1),
    series({
      title: 'How long does it take to process a file?',
      description: 'Normal: under 1 s for photos of phones, without waiting time. The points lead to traces.',
      unit: 's',
      goal: { below: 5 },
      queries: quantiles('upload_processing_seconds_bucket', [50, 95]),
    }),
    series({
      title: 'How many files are processed?',
      description:
        'Normal: as many as uploads created, and more if worker processes refuse files. Files that a user has already are not processed again.',
      unit: 'ops',
      queries: { files: 'sum(rate(upload_processing_seconds_count[$__rate_interval]))' },
    }),
    series({
      title: 'How long do clients wait for an upload?',
      description:
        'Normal: a few seconds, for sending and processing the file. Far longer than processing means that uploads wait for a worker process.',
      unit: 's',
      queries: quantiles(
        'http_request_duration_seconds_bucket{service="gateway", route="/api/upload"}',
        [50, 95],
      ),
    }),
    series({
      title: 'How long do clients wait after the last byte of an upload?',
      description: `Normal: under 1 s for photos of phones. RouteLatencyP95High fires when the 95th percentile is over ${latencyLimits.upload} s for five minutes.`,
      unit: 's',
      goal: { below: latencyLimits.upload },
      queries: quantiles('http_response_duration_seconds_bucket', [50, 95]),
    }),
    series({
      title: 'How much space is free for files?',
      description: 'Normal: over 15 % of the disk with MEDIA_FOLDER. DiskSpaceLow fires below.',
      unit: 'percentunit',
      queries: { '{{instance}}': 'min by (instance) (media_folder_free_bytes / media_folder_size_bytes)' },
    }),
    series({
      title: 'How long does it take to serve a file?',
      description:
        'Normal: 95 % under 100 ms, apart from slow clients. If all downloads are slow, the file store is slow.',
      unit: 's',
      goal: { below: 0.5 },
      queries: quantiles(
        'http_request_duration_seconds_bucket{service="media-upload", method="GET", route=~"/api/media/:id/.+"}',
        [50, 95],
      ),
    }),
  ],
};
