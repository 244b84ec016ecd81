import { z } from 'zod';
import { endpointsWith, jsonBody } from './endpoint.ts';
import { eitherOf, id, model, modelPattern } from './schemas.ts';

const cleared = z.strictObject({
  success: z.literal(true),
  keys_deleted: z
    .int()
    .meta({ description: 'Number of deleted keys: one per cached view and one per unmanaged key.' }),
});

const define = endpointsWith({
  service: 'content-cache',
  access: 'cache:clear',
  responses: { 200: { description: 'Cache cleared.', schema: cleared } },
  errors: ['cache_unavailable'],
});

export const clearModel = define('clearModel', 'POST', '/api/admin/cache/clear-model', {
  rateLimit: { requests: 60_000, seconds: 60 },
  summary: 'Clear records of a model from the cache.',
  description:
    'After a 200, every read that starts later returns the current version of each record. Send either `id` or `ids`. After any other reply, repeat the whole call.',
  body: {
    ...jsonBody(
      eitherOf(
        { model },
        {
          id,
          ids: z
            .array(id)
            .min(1)
            .max(1_000)
            .meta({ description: 'IDs of 1 to 1,000 records. Duplicates are cleared once.' }),
        },
      ),
    ),
    maxBytes: 32_768,
  },
});

export const clearPattern = define('clearPattern', 'POST', '/api/admin/cache/clear-pattern', {
  summary: 'Clear all records of a model.',
  body: jsonBody(z.strictObject({ pattern: modelPattern })),
});
