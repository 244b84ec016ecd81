import { expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { stack } from '../../test/support/stack.ts';
import type { Answer } from '@content-platform/contract/client';
import { until } from '../../test/support/wait.ts';
import { describeEndpoint } from '../../test/contract/describe-endpoint.ts';

type Ask = (options: never) => Promise<Pick<Answer<contract.Endpoint>, 'status' | 'headers'>>;
function testNotModified(ask: Ask, options: { params?: object } = {}): void {
  test('returns 304 for the current ETag', async () => {
    const etag = (await ask(options as never)).headers.get('etag')!;
    const answer = await ask({ ...options, headers: { 'If-None-Match': etag } } as never);
    expect(answer.status).toBe(304);
  });
}

describeEndpoint(contract.health, {}, ({ ask }) => {
  test('reports that every service is ready', async () => {
    const services = { auth: 'up', 'content-cache': 'up' };
    const answer = await until('every service is up', async () => {
      const now = await ask();
      return now.body?.status === 'ok' && now;
    });
    expect(answer).toMatchObject({ status: 200, body: { status: 'ok', services } });
  });
});

describeEndpoint(contract.openapiDocument, {}, ({ ask }) => testNotModified(ask));

describeEndpoint(contract.asyncapiDocument, {}, ({ ask }) => {
  testNotModified(ask);
  test('names the Kafka topic', async () => {
    expect(JSON.stringify((await ask()).body)).toContain(contract.cacheInvalidation.topic);
  });
});

describeEndpoint(contract.docs, {}, ({ ask }) => {
  testNotModified(ask);
  test('serves every file that the page links, relative to its URL without trailing slash', async () => {
    const page = await (await fetch(`${stack().gateway}/api/docs`)).text();
    const parts = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1]!);
    expect(parts).toHaveLength(4);
    for (const part of parts) {
      const response = await fetch(new URL(part, `${stack().gateway}/api/docs`));
      // An unread body keeps its connection open, and with it the test process.
      await response.arrayBuffer();
      expect([part, response.status]).toEqual([part, 200]);
      expect(response.headers.get('content-type')).toMatch(/javascript|css|png/);
    }
  });
});

describeEndpoint(contract.docsAsset, { path: '/api/docs/swagger-ui.css' }, ({ ask }) => {
  testNotModified(ask, { params: { asset: 'swagger-ui.css' } });
  test.each(['package.json', 'index.html', '__proto__', 'swagger-ui.css.map', 'constructor', 'START.js'])(
    'returns 404 for %s',
    async (asset) => {
      expect((await ask({ params: { asset } })).error?.error).toBe('not_found');
    },
  );
});
