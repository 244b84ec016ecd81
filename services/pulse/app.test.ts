import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { PulseReport, Scope } from '@content-platform/contract';
import { createLogger, createMetrics } from '@content-platform/chassis';
import { startHttpServer, type HttpServer } from '../../test/support/http-server.ts';
import { createPulse } from './app.ts';

const nobody = 'http://127.0.0.1:1';
const publicUrl = 'http://pulse.example.com';
const page = { Accept: 'text/html' };
let server: HttpServer;
let url: string;

/** A pulse that is alone: auth, content-cache and the logs database do not answer. A token is the scopes it has. */
beforeAll(async () => {
  const verify = async (token: string) => ({
    kind: 'user' as const,
    id: 1,
    sessionId: '1',
    mustChangePassword: false,
    scopes: new Set(token.split(',') as Scope[]),
  });
  const app = createPulse({
    publicUrl,
    authUrl: nobody,
    contentCacheUrl: nobody,
    links: {},
    sampler: { samples: () => [], processes: () => [] },
    slowLog: { newest: () => new Promise(() => undefined) },
    tokens: { verify },
    logger: createLogger('pulse', 'silent'),
    metrics: createMetrics('pulse'),
  });
  server = await startHttpServer(app);
  url = server.origin;
});
afterAll(() => server.close());

test('where nothing else answers there is a page all the same, which says so', async () => {
  const Authorization = 'Bearer pulse:view,jobs:manage';
  const report = await fetch(`${url}/pulse`, { headers: { Authorization } });
  const { slow, failed_jobs: jobs, targets } = (await report.json()) as PulseReport;
  expect([slow, jobs]).toEqual([null, null]);
  expect(targets.map(({ ok, value }) => [ok, value])).toEqual(targets.map(() => [false, null]));
  const shown = await fetch(`${url}/pulse`, { headers: { ...page, Authorization } });
  expect(shown.status).toBe(200);
  expect((await shown.text()).match(/Not available at the moment/g)).toHaveLength(3);
});

test('failed jobs are not asked for without the right', async () => {
  const headers = { ...page, Authorization: 'Bearer pulse:view' };
  expect(await fetch(`${url}/pulse`, { headers }).then((shown) => shown.text())).toContain(
    'Who has jobs:manage sees them here.',
  );
});

test('while auth is away nobody signs in, and the form says so', async () => {
  const signIn = (headers: Record<string, string>) =>
    fetch(`${url}/pulse/sign-in`, {
      method: 'POST',
      headers: { Origin: publicUrl, ...headers },
      body: new URLSearchParams({ email: 'a@example.com', password: 'x' }),
    });
  const shown = await signIn(page);
  expect([shown.status, shown.headers.get('retry-after')]).toEqual([503, '1']);
  const text = await shown.text();
  expect(text).toContain('Nobody can sign in at the moment.');
  expect(text).toContain('action="/pulse/sign-in"');
  expect(await (await signIn({})).json()).toMatchObject({ error: 'service_unavailable', code: 503 });
});

test('a retry while content-cache is away says so', async () => {
  const headers = { Origin: publicUrl, Authorization: 'Bearer pulse:view,jobs:manage' };
  const send = { method: 'POST', headers, redirect: 'manual' } as const;
  const { status, headers: told } = await fetch(`${url}/pulse/failed-jobs/7/retry`, send);
  expect([status, told.get('location')]).toEqual([303, '/pulse?job=7&outcome=unavailable']);
});
