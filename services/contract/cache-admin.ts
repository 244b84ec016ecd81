import { z } from 'zod';
import { defineEndpoint } from './endpoint.ts';
import { id, model, models } from './schemas.ts';

const cleared = z.strictObject({
  success: z.literal(true),
  keys_deleted: z.int().meta({ description: 'One for each cached view and each unmanaged key.' }),
});

export const clearModel = defineEndpoint({
  name: 'clearModel',
  method: 'POST',
  path: '/api/admin/cache/clear-model',
  service: 'content-cache',
  access: 'cache:clear',
  rateLimit: { requests: 60_000, seconds: 60 },
  summary: 'Clear one record. Once this answers 200, no read that starts later returns an older one.',
  body: { kinds: ['json'], maxBytes: 16_384, schema: z.strictObject({ model, id }) },
  responses: { 200: { description: 'Cleared.', schema: cleared } },
  errors: ['cache_unavailable'],
});

export const clearPattern = defineEndpoint({
  name: 'clearPattern',
  method: 'POST',
  path: '/api/admin/cache/clear-pattern',
  service: 'content-cache',
  access: 'cache:clear',
  rateLimit: { requests: 600, seconds: 60 },
  summary: 'Clear every record of a model.',
  body: {
    kinds: ['json'],
    maxBytes: 16_384,
    schema: z.strictObject({
      pattern: z.enum(models.map((name) => `${name}:*` as const)),
    }),
  },
  responses: { 200: { description: 'Cleared.', schema: cleared } },
  errors: ['cache_unavailable'],
});
