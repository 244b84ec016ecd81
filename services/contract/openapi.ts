import { z } from 'zod';
import { mediaTypes, type Endpoint, type RequestBody, type RequestHeader } from './endpoint.ts';
import { endpoints, errorsOf } from './endpoints.ts';
import { errors, type ErrorCode } from './errors.ts';
import { errorEnvelope } from './schemas.ts';
import { serviceOf, services } from './services.ts';

type Json = Record<string, unknown>;

function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...json } = z.toJSONSchema(schema, { io }) as Json;
  return json;
}

const headerOf = (header: string | RequestHeader): RequestHeader =>
  typeof header === 'string' ? { description: header } : header;

/** Describes headers that every reply of a kind has. */
function withHeaders(headers: [name: string, description: string][]): Json {
  const documented = headers.map(([name, description]) => [
    name,
    { description, required: true, schema: { type: 'string' } },
  ]);
  return documented.length > 0 ? { headers: Object.fromEntries(documented) } : {};
}

function parameters(endpoint: Endpoint): Json[] {
  const of = (place: 'path' | 'query', object: z.ZodObject | undefined) =>
    Object.entries(object?.shape ?? {}).map(([name, schema]) => {
      const { description, ...json } = schemaOf(schema as z.ZodType, 'input');
      const required = place === 'path' || !(schema as z.ZodType).safeParse(undefined).success;
      return {
        name,
        in: place,
        required,
        ...(description ? { description } : {}),
        schema: json,
      };
    });
  const headers = Object.entries(endpoint.headers ?? {})
    // OpenAPI 3.1 ignores a parameter named Authorization: the operation's description carries it.
    .filter(([name]) => name !== 'Authorization')
    .map(([name, header]) => {
      const { description, required = false, pattern } = headerOf(header);
      const schema = { type: 'string', ...(pattern && { pattern: pattern.source }) };
      return { name, in: 'header', required, description, schema };
    });
  return [...of('path', endpoint.params), ...of('query', endpoint.query), ...headers];
}

function successes(endpoint: Endpoint): Json {
  return Object.fromEntries(
    Object.entries(endpoint.responses).map(([status, response]) => {
      const content = response.schema
        ? {
            'application/json': { schema: schemaOf(response.schema, 'output') },
            ...(response.page ? { 'text/html': { schema: { type: 'string' } } } : {}),
          }
        : response.contentType
          ? Object.fromEntries(
              [response.contentType].flat().map((type) => [type, { schema: { type: 'string' } }]),
            )
          : undefined;
      return [
        status,
        {
          description: response.description,
          ...withHeaders(Object.entries(response.headers ?? {})),
          ...(content ? { content } : {}),
        },
      ];
    }),
  );
}

/** Headers of error replies, by code. */
const errorHeaders: { [code in ErrorCode]?: [name: string, description: string] } = {
  token_required: ['WWW-Authenticate', 'What to send (RFC 6750 §3).'],
  invalid_credentials: ['WWW-Authenticate', 'What other endpoints take.'],
  invalid_client: ['WWW-Authenticate', 'What to send (RFC 6749 §5.2).'],
  rate_limited: ['Retry-After', 'Seconds.'],
  service_unavailable: ['Retry-After', 'Seconds.'],
};

function failures(endpoint: Endpoint): Json {
  const byStatus = Map.groupBy(errorsOf(endpoint), (code) => errors[code].status);
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      status,
      {
        description: codes.map((code) => `\`${code}\`: ${errors[code].summary}`).join(' '),
        ...withHeaders(codes.map((code) => errorHeaders[code]).filter((header) => header !== undefined)),
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    ]),
  );
}

interface Documented extends Json {
  description: string;
  content?: Json;
}

/** Describes the replies by status; a status with a page for browsers has both descriptions. */
function answers(endpoint: Endpoint): Json {
  const all = successes(endpoint) as Record<string, Documented>;
  for (const [status, failure] of Object.entries(failures(endpoint) as Record<string, Documented>)) {
    const page = all[status];
    all[status] = {
      ...page,
      ...failure,
      description: [page?.description, failure.description].filter(Boolean).join(' '),
      content: { ...failure.content, ...page?.content },
    };
  }
  return all;
}

function encoding({ files }: RequestBody): Json {
  if (!files) return {};
  const types = Object.entries(files).map(([field, kinds]) => [field, { contentType: kinds.join(', ') }]);
  return { encoding: Object.fromEntries(types) };
}

function operation(endpoint: Endpoint): Json {
  const { access, body } = endpoint;
  const scope = access.includes(':') ? `Needs the scope \`${access}\`.` : undefined;
  const authorization = endpoint.headers?.['Authorization'] && headerOf(endpoint.headers['Authorization']);
  const description = [scope, authorization && `Authorization: ${authorization.description}`]
    .filter(Boolean)
    .join('\n\n');
  return {
    operationId: endpoint.name,
    summary: endpoint.summary,
    ...(description ? { description } : {}),
    tags: [serviceOf(endpoint.service).tag],
    security: access === 'public' ? [] : [{ accessToken: [] }],
    parameters: parameters(endpoint),
    ...(body
      ? {
          requestBody: {
            required: !body.optional,
            content: Object.fromEntries(
              body.kinds.map((kind) => [
                mediaTypes[kind],
                { schema: schemaOf(body.schema, 'input'), ...encoding(body) },
              ]),
            ),
          },
        }
      : {}),
    responses: answers(endpoint),
  };
}

/** The contract as an OpenAPI 3.1 document. `publicUrl` is where clients reach the gateway. */
export function openapi(publicUrl: string): Json {
  const paths: Record<string, Json> = {};
  for (const endpoint of endpoints) {
    const path = endpoint.path.replace(/:(\w+)/g, '{$1}');
    (paths[path] ??= {})[endpoint.method.toLowerCase()] = operation(endpoint);
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Content Platform',
      version: '1.0.0',
      description:
        'Content records through a cache whose invalidations are final. Every GET operation accepts HEAD, too, which counts against the same rate limit; the login at an identity service and its callback answer 405.',
      license: { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' },
    },
    servers: [{ url: publicUrl }],
    tags: services.map(({ tag, description }) => ({ name: tag, description })),
    paths,
    components: {
      schemas: { Error: schemaOf(errorEnvelope, 'output') },
      securitySchemes: { accessToken: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
    },
  };
}
