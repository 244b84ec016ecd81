import { latencyLimits } from '@content-platform/contract';
import type { Board } from './board.ts';
import { series } from './panels.ts';
import { quantiles, rates } from './queries.ts';

/** Files: uploads, what is made of them, downloads. */
export const media: Board = {
  uid: 'media',
  title: 'Media',
  description: 'Uploads, the processing of pictures, downloads',
  panels: [
    series({
      title: 'How do uploads end?',
      description:
        'Normal: created, some existing (the user had it already) and refused (no picture, too large). busy: too much at once; failed: look into the log of media-upload.',
      unit: 'ops',
      queries: [rates('uploads_total', ['outcome'])],
    }),
    series({
      title: 'Which share of uploads is not taken for our reasons?',
      description:
        'Normal: 0. busy and failed within five minutes: there are too few places, or a store is away.',
      unit: 'percentunit',
      goal: { below: 0.01 },
      queries: [
        {
          expr: 'sum(rate(uploads_total{outcome=~"busy|failed"}[5m])) / sum(rate(uploads_total[5m]))',
          legend: 'not taken',
        },
      ],
    }).max(1),
    series({
      title: 'How long does it take to process a file?',
      description:
        'Normal: under 1 s for pictures as phones make them; waiting is not in it. The points lead to traces.',
      unit: 's',
      goal: { below: 5 },
      queries: quantiles('upload_processing_seconds_bucket', [50, 95]),
    }),
    series({
      title: 'How many files are processed?',
      description:
        'Normal: about as many as uploads are created; those that a user has already are not processed again.',
      unit: 'ops',
      queries: [{ expr: 'sum(rate(upload_processing_seconds_count[$__rate_interval]))', legend: 'files' }],
    }),
    series({
      title: 'How long do clients wait for an upload?',
      description:
        'Normal: a few seconds: as long as sending the file takes, and processing it. Far longer than processing: files wait for each other.',
      unit: 's',
      queries: quantiles(
        'http_request_duration_seconds_bucket{service="gateway", route="/api/upload"}',
        [50, 95],
      ),
    }),
    series({
      title: 'How long do clients wait once an upload is sent?',
      description: `Normal: under 1 s for pictures as phones make them. Over ${latencyLimits.upload} s for 95 %, for five minutes, RouteLatencyP95High fires.`,
      unit: 's',
      goal: { below: latencyLimits.upload },
      queries: quantiles('http_response_duration_seconds_bucket', [50, 95]),
    }),
    series({
      title: 'How long does it take to serve a file?',
      description:
        'Normal: 95 % under 100 ms; slow clients take as long as they need. The store is slow when all are.',
      unit: 's',
      goal: { below: 0.5 },
      queries: quantiles(
        'http_request_duration_seconds_bucket{service="media-upload", method="GET", route=~"/api/media/:id/.+"}',
        [50, 95],
      ),
    }),
  ],
};
