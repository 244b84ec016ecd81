import { z } from 'zod';
import { endpointsWith } from './endpoint.ts';
import { fileName } from './schemas.ts';

const conditional = { 'If-None-Match': 'ETags the client has: 304 when one of them is current.' };
const current = { 304: { description: 'The client has the current one.' } };

const define = endpointsWith({ service: 'gateway', rateLimit: { requests: 600, seconds: 60 } });

export const health = define({
  name: 'health',
  method: 'GET',
  path: '/health',
  access: 'public',
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

export const openapiDocument = define({
  name: 'openapiDocument',
  method: 'GET',
  path: '/api/openapi.json',
  access: 'public',
  summary: 'This API as an OpenAPI 3.1 document.',
  headers: conditional,
  responses: {
    200: { description: 'The document.', schema: z.looseObject({ openapi: z.literal('3.1.1') }) },
    ...current,
  },
});

export const asyncapiDocument = define({
  name: 'asyncapiDocument',
  method: 'GET',
  path: '/api/asyncapi.json',
  access: 'public',
  summary: 'The events as an AsyncAPI 3 document.',
  headers: conditional,
  responses: {
    200: { description: 'The document.', schema: z.looseObject({ asyncapi: z.literal('3.0.0') }) },
    ...current,
  },
});

export const docs = define({
  name: 'docs',
  method: 'GET',
  path: '/api/docs',
  access: 'public',
  summary: 'This API to browse.',
  headers: conditional,
  responses: { 200: { description: 'The page.', contentType: 'text/html; charset=utf-8' }, ...current },
});

export const docsAsset = define({
  name: 'docsAsset',
  method: 'GET',
  path: '/api/docs/:asset',
  access: 'public',
  summary: 'A script or style sheet of the page.',
  params: z.strictObject({ asset: fileName }),
  headers: conditional,
  responses: { 200: { description: 'The file.', contentType: '*/*' }, ...current },
  errors: ['not_found'],
});
