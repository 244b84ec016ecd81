import { z } from 'zod';
import { endpointsWith, ifNoneMatch, notModified } from './endpoint.ts';
import { fileName } from './schemas.ts';

const define = endpointsWith({ service: 'gateway', access: 'public' });

export const health = define('health', 'GET', '/health', {
  summary: 'Check the readiness of gateway and services.',
  responses: {
    200: {
      description: 'The gateway is ready. `status` is `degraded` if a service does not respond.',
      schema: z.strictObject({
        status: z.enum(['ok', 'degraded']),
        services: z.record(z.string(), z.enum(['up', 'down'])),
      }),
      headers: { 'Cache-Control': 'no-store' },
    },
  },
});

export const openapiDocument = define('openapiDocument', 'GET', '/api/openapi.json', {
  summary: 'Get the OpenAPI 3.1 document of this API.',
  headers: ifNoneMatch,
  responses: {
    200: { description: 'The document.', schema: z.looseObject({ openapi: z.literal('3.1.1') }) },
    ...notModified,
  },
});

export const asyncapiDocument = define('asyncapiDocument', 'GET', '/api/asyncapi.json', {
  summary: 'Get the AsyncAPI 3 document of the events.',
  headers: ifNoneMatch,
  responses: {
    200: { description: 'The document.', schema: z.looseObject({ asyncapi: z.literal('3.0.0') }) },
    ...notModified,
  },
});

export const docs = define('docs', 'GET', '/api/docs', {
  summary: 'Show the API documentation.',
  headers: ifNoneMatch,
  responses: {
    200: { description: 'The documentation page.', contentType: 'text/html; charset=utf-8' },
    ...notModified,
  },
});

export const docsAsset = define('docsAsset', 'GET', '/api/docs/:asset', {
  summary: 'Get an asset of the documentation page.',
  description: 'Assets are scripts and style sheets.',
  params: z.strictObject({ asset: fileName }),
  headers: ifNoneMatch,
  responses: { 200: { description: 'The file.', contentType: '*/*' }, ...notModified },
  errors: ['not_found'],
});
