import { z } from 'zod';
import {
  mediaTypes,
  type Endpoint,
  type RequestBody,
  type RequestHeader,
  type Response,
} from './endpoint.ts';
import { endpoints, errorsOf } from './endpoints.ts';
import { errors, type ErrorCode } from './errors.ts';
import { readExamples, type Example } from './examples.ts';
import { release } from './release.ts';
import { errorEnvelope } from './schemas.ts';
import { serviceOf, services } from './services.ts';

type Json = Record<string, unknown>;

export function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...json } = z.toJSONSchema(schema, {
    io,
    override({ jsonSchema: made }) {
      // Swift's and NSwag's generators read null in a list of types, but not in anyOf. This is the first step, because
      // zod may call this function for `one` later.
      const [one, other] = made.anyOf ?? [];
      if (other?.type === 'null' && !one!.enum) {
        delete made.anyOf;
        Object.assign(made, { ...one, ...made, type: [one!.type, 'null'] });
      }
      // Otherwise generated clients use 32 bits, and refuse replies with a field that a later release adds.
      if ([made.type].flat()[0] === 'integer' && made.maximum! > 2 ** 31) made.format = 'int64';
      // Generated clients parse a time first, and then fail when they match the object against a pattern.
      if (made.format === 'date-time') delete made.pattern;
      if (io === 'output' && made.additionalProperties === false) delete made.additionalProperties;
    },
  }) as Json;
  return json;
}

const headerOf = (header: string | RequestHeader): RequestHeader =>
  typeof header === 'string' ? { description: header } : header;

const text = { schema: { type: 'string' } };
const file = { schema: { type: 'string', format: 'binary' } };

/** Returns the `headers` of a response; each header is always present. */
function withHeaders(headers: [name: string, description: string][]): { headers?: Json } {
  if (headers.length === 0) return {};
  const all = headers.map(([name, description]) => [name, { description, required: true, ...text }]);
  return { headers: Object.fromEntries(all) };
}

function parameters(endpoint: Endpoint, examples: Example | undefined): Json[] {
  const parametersIn = (place: 'path' | 'query', object: z.ZodObject | undefined) =>
    Object.entries<z.ZodType>((object?.shape ?? {}) as Record<string, z.ZodType>).map(([name, type]) => {
      const { description, ...schema } = schemaOf(type, 'input');
      const required = place === 'path' || !type.safeParse(undefined).success;
      const example = examples?.[place]?.[name];
      return { name, in: place, required, description, schema, example };
    });
  const headers = Object.entries(endpoint.headers ?? {})
    // OpenAPI 3.1 ignores a parameter named Authorization, so operation() adds it to the description.
    .filter(([name]) => name !== 'Authorization')
    .map(([name, header]) => {
      const { description, required = false, pattern } = headerOf(header);
      return {
        name,
        in: 'header',
        required,
        description,
        schema: { type: 'string', pattern: pattern?.source },
        example: examples?.headers?.[name],
      };
    });
  return [...parametersIn('path', endpoint.params), ...parametersIn('query', endpoint.query), ...headers];
}

function contentOf({ schema, page, contentType }: Response, example: unknown): Json | undefined {
  if (schema) {
    const json = { 'application/json': { schema: schemaOf(schema, 'output'), example } };
    return page ? { ...json, 'text/html': text } : json;
  }
  if (!contentType) return undefined;
  return Object.fromEntries([contentType].flat().map((one) => [one, one.startsWith('text/') ? text : file]));
}

interface Documented {
  description: string;
  headers?: Json;
  content: Json | undefined;
}

function successes(endpoint: Endpoint, example: Example | undefined): Record<string, Documented> {
  return Object.fromEntries(
    Object.entries(endpoint.responses).map(([status, response]) => {
      const headers = withHeaders(Object.entries(response.headers ?? {}));
      const reply = Number(status) === example?.status ? example.reply : undefined;
      return [status, { description: response.description, ...headers, content: contentOf(response, reply) }];
    }),
  );
}

const errorHeaders: { [code in ErrorCode]?: [name: string, description: string] } = {
  token_required: ['WWW-Authenticate', 'Bearer challenge (RFC 6750 §3).'],
  invalid_credentials: ['WWW-Authenticate', 'Authentication scheme of the other endpoints.'],
  invalid_client: ['WWW-Authenticate', 'Basic challenge (RFC 6749 §5.2).'],
  rate_limited: ['Retry-After', 'Seconds to wait before the next request.'],
  overloaded: ['Retry-After', 'Seconds to wait before the next request.'],
};

function failures(endpoint: Endpoint): [status: number, Documented][] {
  const byStatus = Map.groupBy(errorsOf(endpoint), (code) => errors[code].status);
  return [...byStatus].map(([status, codes]) => [
    status,
    {
      description: codes.map((code) => `\`${code}\`: ${errors[code].summary}`).join(' '),
      ...withHeaders(codes.map((code) => errorHeaders[code]).filter((header) => header !== undefined)),
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
    },
  ]);
}

/** Returns the responses by status. If a status has both a page and an error, its description names both. */
function responses(endpoint: Endpoint, example: Example | undefined): Json {
  const all = successes(endpoint, example);
  for (const [status, failure] of failures(endpoint)) {
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

function requestBody(body: RequestBody, example: unknown): Json {
  const content = { schema: schemaOf(body.schema, 'input'), example };
  return {
    required: !body.optional,
    content: Object.fromEntries(body.kinds.map((kind) => [mediaTypes[kind], content])),
  };
}

function accessText({ access, cookies, recentLogin }: Endpoint): string | undefined {
  if (access === 'public') return cookies ? undefined : 'Requires no access token.';
  const ofUser = 'the access token of a user';
  const needed = { user: ofUser, reader: `${ofUser}, or the scope \`content:read\`` }[String(access)];
  const text = `Requires ${needed ?? `the scope \`${[access].flat().join('` or `')}\``}`;
  return recentLogin ? `${text} and a login within the last 15 minutes.` : `${text}.`;
}

function operation(endpoint: Endpoint, example: Example | undefined): Json {
  const { access, body } = endpoint;
  const authorization = endpoint.headers?.['Authorization'] && headerOf(endpoint.headers['Authorization']);
  const description = [
    endpoint.description,
    accessText(endpoint),
    authorization && `Authorization: ${authorization.description}`,
  ].filter(Boolean);
  return {
    operationId: endpoint.name,
    summary: endpoint.summary,
    description: description.join('\n\n'),
    tags: [serviceOf(endpoint.service).tag],
    // A program sends a token to /pulse; only a browser sends the cookie.
    security: access === 'public' && !(endpoint.cookies && authorization) ? [] : [{ accessToken: [] }],
    parameters: parameters(endpoint, example),
    requestBody: body && requestBody(body, example?.body),
    responses: responses(endpoint, example),
  };
}

const allCharacters = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code)).join('');

/** Returns the content of a character class: escapes up to U+FFFF. Wrong for surrogates (Cs) and private use (Co). */
function charactersOf(property: string): string {
  const escaped = (code: number): string => `\\\\u${code.toString(16).padStart(4, '0')}`;
  return [...allCharacters.matchAll(new RegExp(`\\p{${property}}+`, 'gu'))]
    .map(
      ({ 0: run, index }) => escaped(index) + (run.length > 1 ? `-${escaped(index + run.length - 1)}` : ''),
    )
    .join('');
}

/** Replaces `\p{…}` in patterns by the characters: Python and validators without the flag `u` do not support it. */
function expandProperties(json: string): string {
  return json.replace(/\\\\p\{(\w+)\}/g, (_, property: string) => charactersOf(property));
}

const paths: Record<string, Json> = {};
const examples = readExamples();
for (const endpoint of endpoints) {
  const path = endpoint.path.replace(/:(\w+)/g, '{$1}');
  (paths[path] ??= {})[endpoint.method.toLowerCase()] = operation(endpoint, examples[endpoint.name]);
}

/** Returns the OpenAPI 3.1 document. `publicUrl` is the URL at which clients reach the gateway. */
export function openapi(publicUrl: string): Json {
  const document = {
    openapi: '3.1.1',
    info: {
      title: 'Content Platform',
      ...release,
      contact: { name: 'Documentation', url: new URL('/api/docs', publicUrl).href },
      description:
        'API of the content platform. Every GET operation also accepts HEAD, which counts against the same rate limit. For HEAD, the identity login and its callback return 405. Every operation can also return 400 `malformed_request`, and 431 `headers_too_large`. Later versions may add fields to replies, values to enums and error codes: ignore unknown fields, and accept unknown values.',
    },
    servers: [{ url: publicUrl }],
    tags: services.map(({ tag, description }) => ({ name: tag, description })),
    paths,
    components: {
      schemas: { Error: schemaOf(errorEnvelope, 'output') },
      securitySchemes: { accessToken: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
    },
  };
  return JSON.parse(expandProperties(JSON.stringify(document))) as Json;
}
