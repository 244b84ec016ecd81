import { z } from 'zod';
import { endpointsWith, jsonBody } from './endpoint.ts';
import { id, model, modelPattern } from './schemas.ts';

const cleared = z.strictObject({
  success: z.literal(true),
  keys_deleted: z.int().meta({ description: 'One for each cached view and each unmanaged key.' }),
});

const define = endpointsWith({
  service: 'content-cache',
  access: 'cache:clear',
  responses: { 200: { description: 'Cleared.', schema: cleared } },
  errors: ['cache_unavailable'],
});

export const clearModel = define('clearModel', 'POST', '/api/admin/cache/clear-model', {
  rateLimit: { requests: 60_000, seconds: 60 },
  summary: 'Clear one record. Once this answers 200, no read that starts later returns an older one.',
  body: jsonBody(z.strictObject({ model, id })),
});

export const clearPattern = define('clearPattern', 'POST', '/api/admin/cache/clear-pattern', {
  summary: 'Clear every record of a model.',
  body: jsonBody(z.strictObject({ pattern: modelPattern })),
});
