import { z } from 'zod';
import { endpointsWith, jsonBody } from './endpoint.ts';
import { id, model, modelPattern } from './schemas.ts';

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
  summary: 'Clear one record from the cache.',
  description: 'After a 200, every read that starts later returns the current version of the record.',
  body: jsonBody(z.strictObject({ model, id })),
});

export const clearPattern = define('clearPattern', 'POST', '/api/admin/cache/clear-pattern', {
  summary: 'Clear all records of a model.',
  body: jsonBody(z.strictObject({ pattern: modelPattern })),
});
