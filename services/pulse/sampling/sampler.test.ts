import { afterEach, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createMetrics } from '@content-platform/chassis';
import { until } from '../../../test/support/wait.ts';
import { startSampler } from './sampler.ts';
import { processesAt } from './scrape.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

async function listen(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('processes that hang, are away or say something else are down; the others are sampled', async () => {
  const { registry } = createMetrics('auth');
  const well = await listen(
    (_request, response) =>
      void registry.getMetricsAsJSON().then((json) => response.end(JSON.stringify(json))),
  );
  const bad = [await listen(() => undefined), await listen((_, response) => response.end('{}'))];
  const sampler = startSampler([well, ...bad, 'http://127.0.0.1:1', 'http://nobody.invalid:1']);
  closers.push(() => sampler.close());
  await until('there are two samples', () => sampler.samples().length === 2, 30_000);
  expect(sampler.processes().map(({ up }) => up)).toEqual([true, false, false, false, false]);
  const [first, second] = sampler.samples().map(({ at }) => at);
  expect(second! - first!).toBeLessThan(20_000);
  expect(sampler.samples()[1]!.values.get('cache_memory')).toBeNull();
});

test('a name stands for each of its addresses, of one family', async () => {
  expect(await processesAt('http://localhost:9080')).toEqual(['http://127.0.0.1:9080']);
  expect(await processesAt('http://[::1]:9080')).toEqual(['http://[::1]:9080']);
  expect(await processesAt('http://nobody.invalid:9080')).toEqual(['http://nobody.invalid:9080']);
});
