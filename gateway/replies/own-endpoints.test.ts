import { expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../test/support/wait.ts';
import { startInstance, type TestInstanceOptions } from '../testing/instance.ts';
import { useTestGateway } from '../testing/use-test-gateway.ts';

const fixture = useTestGateway({ publicUrl: 'https://api.example.com' });

test('the OpenAPI document has the public URL', async () => {
  const document = (await (await fixture.ask('/api/openapi.json')).json()) as { servers: unknown };
  expect(document.servers).toEqual([{ url: 'https://api.example.com' }]);
});

test("the page's Content-Security-Policy blocks other origins and inline scripts", async () => {
  const response = await fixture.ask('/api/docs');
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(response.headers.get('content-security-policy')!.split('; ')).toEqual(
    expect.arrayContaining([
      "default-src 'none'",
      "script-src 'self'",
      "img-src 'self' data: blob:",
      "connect-src 'self' https://api.example.com",
      "frame-ancestors 'none'",
    ]),
  );
  const page = await response.text();
  expect(page).not.toMatch(/<script(?![^>]*\bsrc=)|\son\w+=|<style|javascript:/i);
  expect(page).not.toMatch(/https?:/);
});

test('the start script calls no other host', async () => {
  const script = await (await fixture.ask('/api/docs/start.js')).text();
  expect(script).toContain('validatorUrl: null');
  expect(script).not.toMatch(/https?:/);
});

test.each(['/api/openapi.json', '/api/asyncapi.json', '/api/docs', '/api/docs/swagger-ui-bundle.js'])(
  '%s is not sent again to a client that has it',
  async (path) => {
    const first = await fixture.ask(path);
    await first.arrayBuffer();
    const etag = first.headers.get('etag')!;
    expect(first.headers.get('cache-control')).toBe('public, no-cache');
    // Not with fetch, which sends Cache-Control with a condition.
    const lines = `Host: x\r\nConnection: close\r\nIf-None-Match: "other", ${etag}\r\n`;
    const raw = await fixture.send(`GET ${path} HTTP/1.1\r\n${lines}\r\n`);
    expect(raw).toMatch(/^HTTP\/1\.1 304 Not Modified\r\n[^]*\r\n\r\n$/);
    expect((await fixture.ask(path, { headers: { 'If-None-Match': '"other"' } })).status).toBe(200);
  },
);

const timeouts = { probeInterval: 50 };

async function start(options: TestInstanceOptions) {
  const instance = await startInstance(options);
  fixture.closeLater(instance.close);
  return instance;
}

async function health() {
  const response = await fixture.ask('/health');
  expect(response.status).toBe(200);
  return (await response.json()) as { status: string; services: Record<string, string> };
}
const untilIs = (name: string, state: string) =>
  until(`${name} is ${state}`, async () => (await health()).services[name] === state);

test('reports each service as up or down by its readiness', async () => {
  const [ready, unready] = [await start({ readiness: 'ready' }), await start({ readiness: 'unready' })];
  const services = { auth: ready.url, letters: unready.url, devices: 'http://127.0.0.1:1' };
  await fixture.start({ services, timeouts });
  await untilIs('auth', 'up');
  const states = { auth: 'up', letters: 'down', devices: 'down' };
  expect(await health()).toMatchObject({ status: 'degraded', services: states });
  unready.readiness = 'ready';
  await untilIs('letters', 'up');
  ready.readiness = 'unready';
  await untilIs('auth', 'down');
});

test('reports a hanging service as down and sends it one probe at a time', async () => {
  const hanging = await start({ readiness: 'silent' });
  await fixture.start({ services: { auth: hanging.url }, timeouts });
  const answers = await Promise.all(Array.from({ length: 50 }, health));
  expect(answers.every(({ services }) => services['auth'] === 'down')).toBe(true);
  await sleep(500); // Ten intervals.
  expect(hanging.mostProbesAtOnce).toBe(1);
});
