import { z } from 'zod';
import { endpointsWith, ifNoneMatch, notModified } from './endpoint.ts';
import { fileName } from './schemas.ts';

const define = endpointsWith({ service: 'gateway', access: 'public' });
const defineDocument = endpointsWith({ service: 'gateway', access: 'public', headers: ifNoneMatch });

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

export const openapiDocument = defineDocument('openapiDocument', 'GET', '/api/openapi.json', {
  summary: 'Get the OpenAPI 3.1 document of this API.',
  responses: {
    200: { description: 'The document.', schema: z.looseObject({ openapi: z.literal('3.1.1') }) },
    ...notModified,
  },
});

export const asyncapiDocument = defineDocument('asyncapiDocument', 'GET', '/api/asyncapi.json', {
  summary: 'Get the AsyncAPI 3 document of the events.',
  responses: {
    200: { description: 'The document.', schema: z.looseObject({ asyncapi: z.literal('3.0.0') }) },
    ...notModified,
  },
});

export const docs = defineDocument('docs', 'GET', '/api/docs', {
  summary: 'Show the API documentation.',
  responses: {
    200: { description: 'The documentation page.', contentType: 'text/html; charset=utf-8' },
    ...notModified,
  },
});

export const docsAsset = defineDocument('docsAsset', 'GET', '/api/docs/:asset', {
  summary: 'Get an asset of the documentation page.',
  description: 'Assets are scripts and style sheets.',
  params: z.strictObject({ asset: fileName }),
  responses: { 200: { description: 'The file.', contentType: '*/*' }, ...notModified },
  errors: ['not_found'],
});
