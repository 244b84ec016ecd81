import { describe, expect, test } from '@jest/globals';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { asyncapi } from './asyncapi.ts';
import { endpoints, errorsOf } from './endpoints.ts';
import { errors } from './errors.ts';
import { cacheInvalidation, invalidationEvent } from './events.ts';
import { openapi } from './openapi.ts';

/** What Redocly finds wrong or merely unusual, as `rule at pointer`. */
async function lint(document: unknown): Promise<string[]> {
  const config = await createConfig({
    extends: ['recommended-strict'],
    rules: {
      // A redirect is a success, too.
      'operation-2xx-response': 'off',
      // Where two templates fit a path, the fixed segment decides: here, as OpenAPI has it, and in the gateway.
      'no-ambiguous-paths': 'off',
    },
    // How one logs in to the brokers is up to each installation.
    async3Rules: { 'security-defined': 'off' },
  });
  const source = JSON.stringify(document);
  const problems = await lintFromString({ source, absoluteRef: '/document.json', config });
  return problems.map(({ ruleId, location }) => `${ruleId} at ${location[0]?.pointer}`);
}

describe('OpenAPI', () => {
  // oxlint-disable-next-line typescript/no-explicit-any
  const document = () => openapi('https://api.example.org') as any;

  test.each(['https://api.example.org', 'http://127.0.0.1:8080'])(
    'the document for %s is clean',
    async (url) => {
      expect(await lint(openapi(url))).toEqual([]);
    },
  );

  test('a broken one would be seen', async () => {
    const untyped = document();
    untyped.paths['/api/login'].post.requestBody.content['application/json'].schema.type = 'strin';
    expect(await lint(untyped)).toHaveLength(1);
    const nameless = document();
    nameless.paths['/api/content/{model}/{id}'].get.parameters.shift();
    expect(await lint(nameless)).toHaveLength(1);
    const dangling = document();
    dangling.paths['/api/me'].get.responses[401].content['application/json'].schema.$ref =
      '#/components/none';
    expect(await lint(dangling)).toHaveLength(1);
  });

  test('every endpoint is there with its replies, its errors and who may call it', () => {
    const { paths } = document();
    for (const endpoint of endpoints) {
      const operation = paths[endpoint.path.replace(/:(\w+)/g, '{$1}')][endpoint.method.toLowerCase()];
      expect(operation.operationId).toBe(endpoint.name);
      const statuses = [
        ...Object.keys(endpoint.responses),
        ...errorsOf(endpoint).map((code) => String(errors[code].status)),
      ];
      expect(Object.keys(operation.responses).toSorted()).toEqual([...new Set(statuses)].toSorted());
      for (const code of errorsOf(endpoint)) {
        expect(operation.responses[errors[code].status].description).toContain(`\`${code}\``);
      }
      expect(operation.security).toHaveLength(endpoint.access === 'public' ? 0 : 1);
      if (endpoint.access.includes(':')) expect(operation.description).toContain(endpoint.access);
    }
  });
});

describe('AsyncAPI', () => {
  // oxlint-disable-next-line typescript/no-explicit-any
  const document = () => asyncapi() as any;

  test('the document is clean, and a broken one would be seen', async () => {
    expect(await lint(document())).toEqual([]);
    const wrong = document();
    wrong.operations.receiveInvalidation.action = 'eat';
    expect(await lint(wrong)).toHaveLength(1);
  });

  test('its examples are events that are taken, and the topic is the one that is consumed', () => {
    const { channels, components } = document();
    for (const { payload, examples } of Object.values<any>(components.messages)) {
      expect(examples.length).toBeGreaterThan(0);
      for (const example of examples) {
        expect(invalidationEvent.parse(example.payload)).toMatchObject(example.payload);
        expect(payload.required.filter((name: string) => !(name in example.payload))).toEqual([]);
      }
    }
    expect(channels.cacheInvalidation).toMatchObject({
      address: cacheInvalidation.topic,
      bindings: { kafka: { partitions: cacheInvalidation.partitions } },
    });
  });
});
