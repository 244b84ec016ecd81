import { expect, test } from '@jest/globals';
import type { RequestListener } from 'node:http';
import { createMetrics } from '@content-platform/chassis';
import { calledAfterEach } from '../../../test/support/called-after-each.ts';
import { startHttpServer } from '../../../test/support/http-server.ts';
import { until } from '../../../test/support/wait.ts';
import { gaugesOf, startSampler } from './sampler.ts';
import { processesAt } from './scrape.ts';

const closers = calledAfterEach();

async function listen(answer: RequestListener): Promise<string> {
  const { origin, close } = await startHttpServer(answer);
  closers.push(close);
  return origin;
}

test('reports processes as down if they hang, are unreachable or reply with something else, and samples the others', async () => {
  const { registry, gauge } = createMetrics('auth');
  gauge('process_start_time_seconds', 'Start of the process').set(1_700_000_000);
  const well = await listen(
    (_request, response) =>
      void registry.getMetricsAsJSON().then((json) => response.end(JSON.stringify(json))),
  );
  const bad = [await listen(() => undefined), await listen((_, response) => response.end('{}'))];
  const sampler = startSampler([well, ...bad, 'http://127.0.0.1:1', 'http://unknown.invalid:1']);
  closers.push(() => sampler.close());
  await until('there are two samples', () => sampler.samples().length === 2, 30_000);
  expect(sampler.processes().map(({ up }) => up)).toEqual([true, false, false, false, false]);
});

const began = { name: 'process_start_time_seconds', values: [{ labels: {}, value: 1_700_000_000 }] };
const metricsJson = (name: string, ...values: unknown[]) => JSON.stringify([began, { name, values }]);
const duration = 'http_request_duration_seconds';

test('reports a process with a malformed reply as down, and continues the round', async () => {
  const answers = [
    '[1]',
    '[null]',
    '[]',
    JSON.stringify([{ name: duration, values: 5 }, began]),
    metricsJson(duration, null),
    metricsJson(duration, { value: 1 }),
    metricsJson(duration, { value: 1, labels: null }),
    metricsJson(duration, { value: '1', labels: {} }),
    metricsJson(duration, { value: 1, labels: {}, metricName: 1 }),
    JSON.stringify([{ ...began, values: [{ labels: {}, value: 1e300 }] }]),
    `${JSON.stringify([began])}${' '.repeat(10_000_001)}`,
  ];
  const slow = (name: string, value: number | null, postgres: string) => {
    const ready = JSON.stringify({ checks: { postgres, redis: 'ok' } });
    const answer = (url?: string) => (url === '/metrics' ? metricsJson(name, { value, labels: {} }) : ready);
    return listen(({ url }, response) => void setTimeout(() => response.end(answer(url)), 1_100));
  };
  const addresses = answers.map((answer) => listen((_, response) => response.end(answer)));
  addresses.push(
    listen((request, response) =>
      request.url === '/other'
        ? response.end(JSON.stringify([began]))
        : response.writeHead(302, { Location: '/other' }).end(),
    ),
    // Not measured yet, kept from before PostgreSQL hung, and measured while PostgreSQL hangs.
    slow('failed_jobs_open', null, 'ok'),
    slow('failed_jobs_open', 0, 'unavailable'),
    slow('cache_memory_bytes', 7, 'unavailable'),
  );
  const sampler = startSampler(await Promise.all(addresses));
  closers.push(() => sampler.close());
  const value = (name: 'failed_jobs' | 'cache_memory') => sampler.samples().at(-1)?.values.get(name);
  const areUp = () => sampler.processes().map(({ up }) => up);
  await until('all are measured', () => value('cache_memory') === 7 && areUp().slice(12).every(Boolean));
  expect([areUp(), value('failed_jobs')]).toEqual([[...Array(12).fill(false), true, true, true], null]);
});

test('resolves a name to its addresses of one family', async () => {
  expect(await processesAt('http://localhost:9080')).toEqual(['http://127.0.0.1:9080']);
  expect(await processesAt('http://[::1]:9080')).toEqual(['http://[::1]:9080']);
  expect(await processesAt('http://unknown.invalid:9080')).toEqual(['http://unknown.invalid:9080']);
});

test('leaves out the queue length of a process that no longer reads it from Kafka', () => {
  const scrapeOf = (length: number, at: number) =>
    new Map([
      ['invalidation_queue_length', [{ labels: {}, value: length }]],
      ['invalidation_queue_measured_timestamp_seconds', [{ labels: {}, value: at }]],
    ]);
  expect(gaugesOf([scrapeOf(0, 5_000), scrapeOf(200, 4_000)]).queue).toBe(0);
  expect(gaugesOf([scrapeOf(1, 5_000), scrapeOf(200, 4_999)]).queue).toBe(200);
});
