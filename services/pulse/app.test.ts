import { expect, jest, test } from '@jest/globals';
import type { PulseReport, Scope } from '@content-platform/contract';
import { createLogger, createMetrics } from '@content-platform/chassis';
import { startHttpServer } from '../../test/support/http-server.ts';
import { useStarted } from '../../test/support/use-started.ts';
import { userCaller } from '../../test/support/user-caller.ts';
import { createPulse } from './app.ts';
import { makeReport } from './report.ts';

const unreachable = 'http://127.0.0.1:1';
const publicUrl = 'http://pulse.example.com';
const page = { Accept: 'text/html' };

const log: string[] = [];
/** A pulse whose auth, content-cache, Alertmanager and logs database are unavailable. A token lists its scopes. */
const server = useStarted(() => {
  const verify = async (token: string) => userCaller(1, ...(token.split(',') as Scope[]));
  const app = createPulse({
    publicUrl,
    authUrl: unreachable,
    contentCacheUrl: unreachable,
    alertmanagerUrl: unreachable,
    links: {},
    sampler: { samples: () => [], processes: () => [] },
    slowLog: { newest: () => new Promise(() => undefined) },
    tokens: { verify },
    logger: createLogger('pulse', 'warn', { write: (line) => void log.push(line) }),
    metrics: createMetrics('pulse'),
  });
  return startHttpServer(app);
});

test('shows the page, with a notice, while all dependencies are unavailable', async () => {
  const Authorization = 'Bearer pulse:view,jobs:manage';
  const report = await fetch(`${server.origin}/pulse`, { headers: { Authorization } });
  const { slow, failed_jobs: jobs, targets } = (await report.json()) as PulseReport;
  expect([slow, jobs]).toEqual([null, null]);
  expect(targets.map(({ ok, value }) => [ok, value])).toEqual(targets.map(() => [false, null]));
  const shown = await fetch(`${server.origin}/pulse`, { headers: { ...page, Authorization } });
  expect(shown.status).toBe(200);
  expect((await shown.text()).match(/Not available/g)).toHaveLength(3);
  expect(log.filter((line) => line.includes('/pulse does not show failed jobs'))).toHaveLength(1);
});

test('does not request failed jobs for a viewer without jobs:manage', async () => {
  const none = async () => null;
  const jobs = jest.fn(none);
  const ask = { sampler: { samples: () => [], processes: () => [] }, slow: none, jobs, receivers: none };
  await makeReport(ask, { caller: userCaller(1, 'pulse:view'), token: 't' });
  expect(jobs).not.toHaveBeenCalled();
  const headers = { ...page, Authorization: 'Bearer pulse:view' };
  expect(await fetch(`${server.origin}/pulse`, { headers }).then((shown) => shown.text())).toContain(
    'You need the scope jobs:manage to see failed jobs.',
  );
});

test('refuses to sign in while auth is unavailable, and the form explains it', async () => {
  const signIn = (headers: Record<string, string>) =>
    fetch(`${server.origin}/pulse/sign-in`, {
      method: 'POST',
      headers: { Origin: publicUrl, ...headers },
      body: new URLSearchParams({ email: 'a@example.com', password: 'x' }),
    });
  const shown = await signIn(page);
  expect([shown.status, shown.headers.get('retry-after')]).toEqual([503, '1']);
  const text = await shown.text();
  expect(text).toContain('Signing in is unavailable. Try again later.');
  expect(await (await signIn({})).json()).toMatchObject({ error: 'service_unavailable', code: 503 });
});

test('explains a failed retry while content-cache is unavailable', async () => {
  const headers = { Origin: publicUrl, Authorization: 'Bearer pulse:view,jobs:manage' };
  const send = { method: 'POST', headers, redirect: 'manual' } as const;
  const { status, headers: sent } = await fetch(`${server.origin}/pulse/failed-jobs/7/retry`, send);
  expect([status, sent.get('location')]).toEqual([303, '/pulse?job=7&outcome=unavailable']);
});
