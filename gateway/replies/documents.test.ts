import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { endpoints } from '@content-platform/contract';
import { sendRaw } from '../../test/support/raw-http.ts';
import { startGateway, type TestGateway } from '../testing/gateway.ts';

let gateway: TestGateway;
beforeAll(async () => {
  const services = { auth: 'http://127.0.0.1:1', 'content-cache': 'http://127.0.0.1:1' };
  gateway = await startGateway({ services, publicUrl: 'https://api.example.com' });
});
afterAll(() => gateway.close());

const get = (path: string, headers: Record<string, string> = {}) => fetch(gateway.origin + path, { headers });

test('the OpenAPI document lists every endpoint and where the API is', async () => {
  const document = (await (await get('/api/openapi.json')).json()) as {
    servers: unknown;
    paths: Record<string, Record<string, { operationId: string }>>;
  };
  expect(document.servers).toEqual([{ url: 'https://api.example.com' }]);
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
  expect(operations.map(({ operationId }) => operationId).toSorted()).toEqual(
    endpoints.map(({ name }) => name).toSorted(),
  );
});

test('the AsyncAPI document is there', async () => {
  expect(await (await get('/api/asyncapi.json')).json()).toMatchObject({ asyncapi: '3.0.0' });
});

test("the page's policy lets in nothing from elsewhere and runs nothing that is written into it", async () => {
  const response = await get('/api/docs');
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
  const policy = new Map(
    response.headers
      .get('content-security-policy')!
      .split('; ')
      .map((part) => [part.split(' ')[0]!, part.split(' ').slice(1).join(' ')]),
  );
  expect(policy.get('default-src')).toBe("'none'");
  expect(policy.get('script-src')).toBe("'self'");
  expect(policy.get('connect-src')).toBe("'self' https://api.example.com");
  expect(policy.get('frame-ancestors')).toBe("'none'");
  const page = await response.text();
  expect(page).not.toMatch(/<script(?![^>]*\bsrc=)|\son\w+=|<style|javascript:/i);
  expect(page).not.toMatch(/https?:/);
});

describe('the files of the page', () => {
  test('all that the page names exist, relative to its address without a slash at the end', async () => {
    const page = await (await get('/api/docs')).text();
    const names = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1]!);
    expect(names).toHaveLength(4);
    for (const name of names) {
      const { pathname } = new URL(name, `${gateway.origin}/api/docs`);
      const response = await get(pathname);
      expect([pathname, response.status]).toEqual([pathname, 200]);
      expect(response.headers.get('content-type')).toMatch(/javascript|css|png/);
    }
  });

  test('the start script asks nobody else', async () => {
    const script = await (await get('/api/docs/start.js')).text();
    expect(script).toContain('validatorUrl: null');
    expect(script).not.toMatch(/https?:/);
  });

  test.each(['index.html', 'package.json', 'swagger-ui.css.map', '__proto__', 'constructor', 'START.js'])(
    '%s is not served',
    async (name) => {
      const response = await get(`/api/docs/${name}`);
      expect([response.status, await response.json()]).toEqual([
        404,
        expect.objectContaining({ error: 'not_found' }),
      ]);
    },
  );
});

test.each(['/api/openapi.json', '/api/asyncapi.json', '/api/docs', '/api/docs/swagger-ui-bundle.js'])(
  '%s is not sent again to who has it',
  async (path) => {
    const first = await get(path);
    await first.arrayBuffer();
    const etag = first.headers.get('etag')!;
    expect(first.headers.get('cache-control')).toBe('public, no-cache');
    // Not with fetch, which would ask for a new one by Cache-Control.
    const lines = `Host: x\r\nConnection: close\r\nIf-None-Match: "other", ${etag}\r\n`;
    const raw = await sendRaw(gateway.origin, `GET ${path} HTTP/1.1\r\n${lines}\r\n`);
    expect(raw.split('\r\n')[0]).toBe('HTTP/1.1 304 Not Modified');
    expect(raw.endsWith('\r\n\r\n')).toBe(true);
    expect((await get(path, { 'If-None-Match': '"other"' })).status).toBe(200);
  },
);
