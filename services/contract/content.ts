import { z } from 'zod';
import { endpointsWith, ifNoneMatch, notModified } from './endpoint.ts';
import { id, idSegment, model, time } from './schemas.ts';

export const views = ['full', 'summary'] as const;
export type View = (typeof views)[number];

const summary = z.strictObject({
  model,
  id,
  title: z.string(),
  version: z.int().meta({ description: 'Version number; increases with every change of the record.' }),
  updated_at: time,
});
const full = z.strictObject({ ...summary.shape, body: z.unknown().meta({ description: 'Any JSON value.' }) });

const define = endpointsWith({ service: 'content-cache' });

export const readContent = define('readContent', 'GET', '/api/content/:model/:id', {
  access: 'reader',
  rateLimit: { requests: 6000, seconds: 60 },
  summary: 'Read a content record through the cache.',
  description:
    'Machine clients need the scope `content:read`. An installation can restrict models to callers with the scope `content:restricted`.',
  params: z.strictObject({ model, id: idSegment }),
  query: z.strictObject({ view: z.enum(views).default('full') }),
  headers: ifNoneMatch,
  responses: {
    200: {
      description: 'The record. The `summary` view has no `body`.',
      schema: z.union([full, summary]),
      headers: {
        'X-Cache':
          '`hit`: from the cache. `miss`: from the database, then cached. `bypass`: from the database, because the cache was unavailable.',
        ETag: 'Identifies this content of the reply; changes with it.',
        'Cache-Control': 'private, no-cache',
      },
    },
    ...notModified,
  },
  errors: ['not_found'],
});
