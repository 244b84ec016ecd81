import { z } from 'zod';
import { endpointsWith, ifNoneMatch, notModified } from './endpoint.ts';
import { fileName } from './schemas.ts';

const define = endpointsWith({ service: 'gateway', access: 'public' });

export const health = define('health', 'GET', '/health', {
  summary: 'Whether the gateway and the services behind it are ready.',
  responses: {
    200: {
      description: 'The gateway answers; `degraded` when a service behind it does not.',
      schema: z.strictObject({
        status: z.enum(['ok', 'degraded']),
        services: z.record(z.string(), z.enum(['up', 'down'])),
      }),
      headers: { 'Cache-Control': 'no-store' },
    },
  },
});

export const openapiDocument = define('openapiDocument', 'GET', '/api/openapi.json', {
  summary: 'This API as an OpenAPI 3.1 document.',
  headers: ifNoneMatch,
  responses: {
    200: { description: 'The document.', schema: z.looseObject({ openapi: z.literal('3.1.1') }) },
    ...notModified,
  },
});

export const asyncapiDocument = define('asyncapiDocument', 'GET', '/api/asyncapi.json', {
  summary: 'The events as an AsyncAPI 3 document.',
  headers: ifNoneMatch,
  responses: {
    200: { description: 'The document.', schema: z.looseObject({ asyncapi: z.literal('3.0.0') }) },
    ...notModified,
  },
});

export const docs = define('docs', 'GET', '/api/docs', {
  summary: 'This API to browse.',
  headers: ifNoneMatch,
  responses: { 200: { description: 'The page.', contentType: 'text/html; charset=utf-8' }, ...notModified },
});

export const docsAsset = define('docsAsset', 'GET', '/api/docs/:asset', {
  summary: 'A script or style sheet of the page.',
  params: z.strictObject({ asset: fileName }),
  headers: ifNoneMatch,
  responses: { 200: { description: 'The file.', contentType: '*/*' }, ...notModified },
  errors: ['not_found'],
});
