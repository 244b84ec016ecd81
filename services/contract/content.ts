import { z } from 'zod';
import { endpointsWith, ifNoneMatch, notModified } from './endpoint.ts';
import { id, idSegment, model, time } from './schemas.ts';

export const views = ['full', 'summary'] as const;
export type View = (typeof views)[number];

const summary = z.strictObject({
  model,
  id,
  title: z.string(),
  version: z.int().meta({ description: 'Grows with every change of the record.' }),
  updated_at: time,
});
const full = z.strictObject({ ...summary.shape, body: z.unknown().meta({ description: 'Any JSON value.' }) });

const define = endpointsWith({ service: 'content-cache' });

export const readContent = define('readContent', 'GET', '/api/content/:model/:id', {
  access: 'token',
  rateLimit: { requests: 6000, seconds: 60 },
  summary: 'Read a content record through the cache.',
  params: z.strictObject({ model, id: idSegment }),
  query: z.strictObject({ view: z.enum(views).default('full') }),
  headers: ifNoneMatch,
  responses: {
    200: {
      description: 'The record; the summary is the same without `body`.',
      schema: z.union([full, summary]),
      headers: {
        'X-Cache': 'hit, miss, or bypass when the cache could not be asked.',
        ETag: 'Changes whenever the reply does.',
        'Cache-Control': 'private, no-cache',
      },
    },
    ...notModified,
  },
  errors: ['not_found'],
});
