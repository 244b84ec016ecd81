import { afterAll, expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { newAddress, newUser, tokenOf } from '../support/accounts.ts';
import { newPushToken } from '../support/devices.ts';
import { announce, closeEvents } from '../support/events.ts';
import { fileOf, newImage } from '../support/media.ts';
import { scrape, scrapeAll, type Series } from '../support/metrics.ts';
import { clear, read, samplePath } from '../support/platform.ts';
import { closeRecords, freshId, save } from '../support/records.ts';
import { stack } from '../support/stack.ts';
import { until } from '../support/wait.ts';

afterAll(async () => {
  await closeEvents();
  await closeRecords();
});

/** Other tests use the stack at the same time, so counts are lower bounds. */
type Gain = (service: string, series: string) => number;

/** Returns the increase of each process's series while `work` ran. */
async function gained(work: () => Promise<void>): Promise<Gain> {
  const before = await scrapeAll();
  await work();
  const after = await scrapeAll();
  const valueOf = (all: typeof after, service: string, name: string) => all.get(service)!.get(name) ?? 0;
  return (service, name) => valueOf(after, service, name) - valueOf(before, service, name);
}

const requestsOf = (service: string, { method, path }: contract.Endpoint, status: number) =>
  `http_request_duration_seconds_count{method="${method}",route="${path}",service="${service}",status="${status}"}`;

test('the gateway counts each request by route and status, with routes of the contract only', async () => {
  const { gateway } = stack();
  const statuses = new Map<contract.Endpoint, number>();
  const gain = await gained(async () => {
    for (const endpoint of contract.endpoints) {
      const headers = { 'X-Forwarded-For': newAddress() };
      const request = { method: endpoint.method, headers, redirect: 'manual' } as const;
      const answer = await fetch(gateway + samplePath(endpoint), request);
      await answer.arrayBuffer();
      statuses.set(endpoint, answer.status);
    }
  });
  const missing = [...statuses]
    .map(([endpoint, status]) => requestsOf('gateway', endpoint, status))
    .filter((series) => gain('gateway', series) === 0);
  expect(missing).toEqual([]);
  const series: Series = (await scrapeAll()).get('gateway')!;
  const routes = [...series.keys()].flatMap((name) => /_count\{.*route="([^"]+)"/.exec(name)?.[1] ?? []);
  // Other tests request paths outside the contract, which count as the route unknown.
  const known = new Set<string>(['unknown', ...contract.endpoints.map(({ path }) => path)]);
  expect(routes.filter((route) => !known.has(route))).toEqual([]);
});

test('each service counts its responses and their outcomes', async () => {
  const { gateway } = stack();
  const [user, record] = [await newUser(), freshId()];
  const { token } = user;
  await save('webform', record, 'One');
  const image = fileOf(await newImage());
  const gain = await gained(async () => {
    const wrong = { email: user.email, password: 'not the password' };
    await call(gateway, contract.login, { body: wrong, headers: { 'X-Forwarded-For': newAddress() } });
    await call(gateway, contract.me, { token });
    await call(gateway, contract.listLetters, { token });
    await call(gateway, contract.registerFcmToken, { body: { token: newPushToken() }, token });
    const upload = async () => (await call(gateway, contract.upload, { body: image, token })).status < 300;
    for (let times = 0; times < 2; times += 1) await until('it is uploaded', upload);
    await call(gateway, contract.pulse, { token: await tokenOf(gateway, 'sre') });
    await read('webform', record);
    await until('it is cached', async () => (await read('webform', record)).cache === 'hit');
    await clear('webform', record);
    const failed = async () => (await scrape('content-cache')).get('failed_jobs_total{class="not_json"}')!;
    const before = await failed();
    await announce('not JSON');
    await until('the failed job is counted', async () => (await failed()) > before);
  });
  const expected: [service: string, series: string][] = [
    ['auth', requestsOf('auth', contract.login, 401)],
    ['auth', 'logins_total{outcome="failure"}'],
    ['auth', requestsOf('auth', contract.me, 200)],
    ['letters', requestsOf('letters', contract.listLetters, 200)],
    ['devices', requestsOf('devices', contract.registerFcmToken, 200)],
    ['media-upload', requestsOf('media-upload', contract.upload, 201)],
    ['media-upload', 'uploads_total{outcome="created"}'],
    ['media-upload', 'uploads_total{outcome="existing"}'],
    ['media-upload', 'upload_processing_seconds_count'],
    ['pulse', requestsOf('pulse', contract.pulse, 200)],
    ['content-cache', 'cache_reads_total{model="webform",outcome="miss"}'],
    ['content-cache', 'cache_reads_total{model="webform",outcome="hit"}'],
    ['content-cache', 'cache_keys_deleted_total{source="http"}'],
    ['content-cache', 'invalidation_delay_seconds_count{source="http"}'],
    ['content-cache', 'failed_jobs_total{class="not_json"}'],
    ['content-cache', 'db_query_duration_seconds_count{operation="read_record",service="content-cache"}'],
  ];
  expect(expected.filter(([service, series]) => !(gain(service, series) > 0))).toEqual([]);
});
