import { describe, expect, test } from '@jest/globals';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { readFileSync } from 'node:fs';
import { asyncapi } from './asyncapi.ts';
import { endpoints, errorsOf } from './endpoints.ts';
import { errors } from './errors.ts';
import { cacheInvalidation, invalidationEvent } from './events.ts';
import { readExamples } from './examples.ts';
import { openapi } from './openapi.ts';

type Json = Record<string, unknown>;

/** Rules of Spectral's ruleset spectral:oas that Redocly's recommended-strict leaves out. */
const spectralRules = {
  'info-contact': 'error',
  'operation-description': 'error',
  'operation-tag-defined': 'error',
  'operation-parameters-unique': 'error',
  'no-duplicated-tag-names': 'error',
  'no-invalid-parameter-examples': 'error',
  'no-server-trailing-slash': 'error',
} as const;

/** Returns Redocly's errors and warnings, as `rule at pointer`. */
async function lint(document: unknown, rules = {}): Promise<string[]> {
  const config = await createConfig({
    extends: ['recommended-strict'],
    rules: {
      ...rules,
      // Some operations only redirect, and a redirect counts as success.
      'operation-2xx-response': 'off',
      // If two templates match a path, OpenAPI and the gateway both prefer the fixed segment.
      'no-ambiguous-paths': 'off',
    },
    // Each installation configures its own broker authentication.
    async3Rules: { 'security-defined': 'off' },
  });
  const source = JSON.stringify(document);
  const problems = await lintFromString({ source, absoluteRef: '/document.json', config });
  return problems.map(({ ruleId, location }) => `${ruleId} at ${location[0]?.pointer}`);
}

const rootPackage = new URL('../../package.json', import.meta.url);

test('both documents name the version and licence of the release', () => {
  const { version, license } = JSON.parse(readFileSync(rootPackage, 'utf8'));
  for (const document of [openapi('https://api.example.org'), asyncapi()])
    expect(document['info']).toMatchObject({ version, license: { name: license } });
});

describe('examples', () => {
  const examples = readExamples();

  test('every endpoint has one, and every example belongs to an endpoint', () =>
    expect(Object.keys(examples).toSorted()).toEqual(endpoints.map(({ name }) => name).toSorted()));

  test.each(endpoints.map((endpoint) => [endpoint.name, endpoint] as const))(
    '%s has an example of a valid request and reply',
    (name, { params, query, body, responses }) => {
      const example = examples[name]!;
      const texts = (values = {}) =>
        Object.fromEntries(Object.entries(values).map(([key, value]) => [key, String(value)]));
      params?.parse(texts(example.path));
      query?.parse(texts(example.query));
      if (body && !body.kinds.includes('multipart')) body.schema.parse(example.body);
      expect(responses).toHaveProperty(String(example.status));
      responses[example.status]!.schema?.parse(example.reply);
    },
  );
});

describe('OpenAPI', () => {
  // oxlint-disable-next-line typescript/no-explicit-any
  const document = () => openapi('https://api.example.org') as any;

  test('has no Redocly problems', async () => expect(await lint(document(), spectralRules)).toEqual([]));

  test('lists every endpoint with its responses, errors and required access', () => {
    const { paths } = document();
    for (const endpoint of endpoints) {
      const operation = paths[endpoint.path.replace(/:(\w+)/g, '{$1}')][endpoint.method.toLowerCase()];
      expect(operation.operationId).toBe(endpoint.name);
      const statuses = [
        ...Object.keys(endpoint.responses),
        ...errorsOf(endpoint).map((code) => String(errors[code].status)),
      ];
      expect(Object.keys(operation.responses).toSorted()).toEqual([...new Set(statuses)].toSorted());
      for (const code of errorsOf(endpoint))
        expect(operation.responses[errors[code].status].description).toContain(`\`${code}\``);
      expect(operation.security.length > 0).toBe(endpoint.access !== 'public' || endpoint.name === 'pulse');
      for (const one of [endpoint.access].flat())
        if (one.includes(':')) expect(operation.description).toContain(`\`${one}\``);
      expect(operation.description).not.toContain('`reader`');
    }
  });
});

describe('OpenAPI schemas', () => {
  // oxlint-disable-next-line typescript/no-explicit-any
  const { paths } = JSON.parse(JSON.stringify(openapi('https://api.example.org'))) as any;
  const named = (parameters: { name: string }[], name: string) => parameters.find((one) => one.name === name);
  // oxlint-disable-next-line typescript/no-explicit-any
  const operations = Object.values<any>(paths).flatMap((path) => Object.values<any>(path));

  test('declares no pattern beside date-time, and none with \\p{…}, which Python and Spectral do not support', () =>
    expect(JSON.stringify(paths)).not.toMatch(/\\p\{|"date-time","pattern"/));

  test('shows the example of each JSON body and JSON reply', () => {
    for (const { operationId, requestBody, responses } of operations) {
      const { body, status, reply } = readExamples()[operationId]!;
      const jsonOf = (part?: { content?: Json }) => part?.content?.['application/json'];
      if (jsonOf(requestBody)) expect(jsonOf(requestBody)).toMatchObject({ example: body });
      if (jsonOf(responses[status])) expect(jsonOf(responses[status])).toMatchObject({ example: reply });
    }
  });

  test('declares numbers in paths and queries as integers', () => {
    const { parameters } = paths['/api/admin/users/{id}/device-tokens'].get;
    const most = Number.MAX_SAFE_INTEGER;
    expect(named(parameters, 'id')).toMatchObject({ schema: { format: 'int64', minimum: 1, maximum: most } });
    expect(named(parameters, 'limit')).toMatchObject({
      schema: { type: 'integer', minimum: 1, maximum: 100, default: 50 },
    });
  });

  test('declares the characters that strings must not contain', () => {
    const { schema } = paths['/api/login'].post.requestBody.content['application/json'];
    expect('a\0').not.toMatch(new RegExp(schema.properties.password.pattern));
    const [search] = paths['/api/admin/users'].get.parameters;
    expect('\n').not.toMatch(new RegExp(search.schema.pattern, 'u'));
    const name =
      paths['/api/admin/users'].post.requestBody.content['application/json'].schema.properties.name;
    const patterns = name.allOf.map(({ pattern }: { pattern: string }) => new RegExp(pattern, 'u'));
    const isAccepted = (text: string) => patterns.every((pattern: RegExp) => pattern.test(text));
    expect(['Uma', ' ', 'U\u202ema'].map(isAccepted)).toEqual([true, false, false]);
  });

  test('declares unique roles, replies that may gain fields, and files', () => {
    const { requestBody: body, responses } = paths['/api/admin/users'].post;
    expect(body.content['application/json'].schema.properties.roles).toMatchObject({ uniqueItems: true });
    expect(responses[201].content['application/json'].schema).not.toHaveProperty('additionalProperties');
    const { content } = paths['/api/media/{id}/{variant}'].get.responses[200];
    expect(content['image/webp'].schema.format).toBe('binary');
    const { schema } = paths['/api/admin/audit'].get.responses[200].content['application/json'];
    const { user_id } = schema.properties.items.items.properties;
    expect(user_id).toMatchObject({ type: ['integer', 'null'], format: 'int64' });
    const upload = paths['/api/upload'].post.requestBody.content['multipart/form-data'];
    expect(upload).not.toHaveProperty('encoding'); // Kotlin clients would send the list as the part's type.
  });

  test('declares required request headers and their patterns', () => {
    const change = paths['/api/letters/{id}'].patch.parameters;
    expect(named(change, 'If-Match')).toMatchObject({ required: true });
    const skip = paths['/api/updateLetterSkippedWebform'].post.parameters;
    expect(named(skip, 'If-Match')).toMatchObject({ required: false });
    const key = named(skip, 'Idempotency-Key') as unknown as { schema: { pattern: string } };
    const isAccepted = (text: string) => new RegExp(key.schema.pattern).test(text);
    expect(['a', 'a b'].map(isAccepted)).toEqual([true, true]);
    expect(['', ' ', 'é', 'x'.repeat(256)].filter(isAccepted)).toEqual([]);
  });

  test('declares response headers as required: WWW-Authenticate for 401, Retry-After for 429', () => {
    for (const { security, responses } of operations) {
      for (const reply of [responses[429], responses[503]].filter(Boolean))
        expect(reply.headers).toMatchObject({ 'Retry-After': { required: true } });
      if (security.length > 0)
        expect(responses[401].headers).toMatchObject({ 'WWW-Authenticate': { required: true } });
      for (const { headers = {} } of Object.values<{ headers?: Record<string, { required: boolean }> }>(
        responses,
      ))
        for (const { required } of Object.values(headers)) expect(required).toBe(true);
    }
  });
});

describe('AsyncAPI', () => {
  test('has no Redocly problems', async () => expect(await lint(asyncapi())).toEqual([]));

  test('has examples that the event schema accepts, and names the consumed topic', () => {
    // oxlint-disable-next-line typescript/no-explicit-any
    const { channels, components } = asyncapi() as any;
    for (const { payload, examples } of Object.values<any>(components.messages)) {
      expect(examples.length).toBeGreaterThan(0);
      for (const example of examples) {
        expect(invalidationEvent.parse(example.payload)).toMatchObject(example.payload);
        expect(payload.required.filter((name: string) => !(name in example.payload))).toEqual([]);
      }
    }
    expect(channels.cacheInvalidation.address).toBe(cacheInvalidation.topic);
    expect(components.messages.recordChanged.payload.properties.id.format).toBe('int64');
  });
});
