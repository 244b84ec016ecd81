import { afterEach, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { freePort, freeRow } from '../../deploy/local/ports.ts';
import { startCollector } from '../../test/support/collector.ts';
import { bareEnvironment } from '../../test/support/processes.ts';
import { until } from '../../test/support/wait.ts';

const url = (file: string) => new URL(file, import.meta.url).href;
const main = new URL('testing/traced-service.ts', import.meta.url).pathname;

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** A process with the preload, as the launcher starts it. */
async function start(env: Record<string, string>, preloads = ['telemetry.ts']) {
  const port = await freeRow(1);
  const flags = preloads.map((file) => `--import=${url(file)}`);
  const child = spawn(process.execPath, [...flags, main], {
    env: {
      ...bareEnvironment,
      PORT: String(port),
      OTEL_TRACES_SAMPLER_ARG: '1',
      OTEL_BSP_SCHEDULE_DELAY: '20',
      ...env,
    },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
  const ended = once(child, 'close').then(([code]) => code as number);
  stops.push(() => child.kill('SIGKILL'));
  const ask = async (headers: Record<string, string> = {}) =>
    (await fetch(`http://127.0.0.1:${port}/.well-known/jwks.json`, { headers })).status;
  return { child, ask, ended, output: () => output };
}

const complaints = (output: string) =>
  output.split('\n').filter((line) => line.includes('traces cannot be sent'));

test('requests are sent as spans, under the name of the folder that the process lies in', async () => {
  const collector = await startCollector();
  stops.push(collector.stop);
  const { ask } = await start(collector.environment);
  await until('it answers', async () => (await ask()) === 200);
  const [span] = await until('a span came', () => collector.spans.length > 0 && collector.spans);
  expect(span).toMatchObject({ service: 'testing', name: 'GET /.well-known/jwks.json', kind: 2 });
});

test('of what is neither slow nor fails a part is sent', async () => {
  const collector = await startCollector();
  stops.push(collector.stop);
  const { ask } = await start({ ...collector.environment, OTEL_TRACES_SAMPLER_ARG: '0' });
  await until('it answers', async () => (await ask()) === 200);
  for (let n = 0; n < 50; n += 1) await ask();
  expect(await ask({ 'X-Takes': '250' })).toBe(200);
  expect(await ask({ 'X-Fails': 'yes' })).toBe(500);
  await until('the last one came', () => collector.spans.some(({ status }) => status.code === 2));
  expect(collector.spans.map(({ status }) => status.code ?? 0)).toEqual([0, 2]);

  const half = await start({ ...collector.environment, OTEL_TRACES_SAMPLER_ARG: '0.5' });
  await until('it answers', async () => (await half.ask()) === 200);
  for (let n = 0; n < 200; n += 1) await half.ask();
  half.child.kill('SIGTERM');
  expect(await half.ended).toBe(0);
  // 100 on average: outside of this once in a hundred million.
  expect(collector.spans.length - 2).toBeGreaterThan(60);
  expect(collector.spans.length - 2).toBeLessThan(142);
});

test('what is left is sent when the process stops', async () => {
  const collector = await startCollector();
  stops.push(collector.stop);
  const { child, ask, ended } = await start({ ...collector.environment, OTEL_BSP_SCHEDULE_DELAY: '60000' });
  await until('it answers', async () => (await ask()) === 200);
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
  expect(collector.spans.length).toBeGreaterThan(0);
});

test('a collector that is away: requests are answered, and the log has one line', async () => {
  const endpoint = `http://127.0.0.1:${await freePort()}`;
  // The exporter tries again for so long before it gives a batch up.
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_TIMEOUT: '50' };
  const { child, ask, ended, output } = await start(env);
  await until('it answers', async () => (await ask()) === 200);
  await until('it complains', () => complaints(output()).length > 0);
  const end = performance.now() + 2_000;
  while (performance.now() < end) expect(await ask()).toBe(200);
  expect(complaints(output())).toHaveLength(1);
  expect(JSON.parse(complaints(output())[0]!)).toEqual(
    expect.not.objectContaining({ request_id: expect.anything() }),
  );
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
});

test('a collector that hangs: requests are answered, and the process stops in time', async () => {
  let asked = 0;
  const hanging = createServer(() => (asked += 1));
  await once(hanging.listen(0, '127.0.0.1'), 'listening');
  stops.push(() => (hanging.closeAllConnections(), hanging.close()));
  const endpoint = `http://127.0.0.1:${(hanging.address() as AddressInfo).port}`;
  const { child, ask, ended } = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint });
  await until('it answers', async () => (await ask()) === 200);
  await until('the collector holds a batch', () => asked > 0);
  // More than the queue takes.
  for (let n = 0; n < 3_000; n += 50) {
    const statuses = await Promise.all(Array.from({ length: 50 }, () => ask()));
    expect(new Set(statuses)).toEqual(new Set([200]));
  }
  const told = performance.now();
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
  // The exporter would wait for ten seconds.
  expect(performance.now() - told).toBeLessThan(5_000);
});

test("without a collector nothing of OpenTelemetry's SDK is loaded", async () => {
  const preloads = ['testing/loaded-modules.ts', 'telemetry.ts'];
  const off = await start({}, preloads);
  const on = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' }, preloads);
  for (const { ask } of [off, on]) await until('it answers', async () => (await ask()) === 200);
  expect(on.output()).toContain('loaded ');
  expect(off.output()).not.toContain('loaded ');
});

test('an address that is none stops the process with one line', async () => {
  const { ended, output } = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector' });
  expect(await ended).toBe(1);
  expect(output()).toBe(
    'auth: OTEL_EXPORTER_OTLP_ENDPOINT must be an address starting with http:// or https://, not "collector"\n',
  );
});

test('a share of traces that is none stops the process with one line', async () => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_TRACES_SAMPLER_ARG: '5%' };
  const { ended, output } = await start(env);
  expect(await ended).toBe(1);
  expect(output()).toBe('auth: OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, not "5%"\n');
});

test('a process that was started without the preload says that there are no traces', async () => {
  const { ask, output } = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' }, []);
  await until('it answers', async () => (await ask()) === 200);
  expect(output()).toContain('there are no traces');
});
