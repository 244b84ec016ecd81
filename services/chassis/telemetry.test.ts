import { afterEach, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { freeRow } from '../../test/support/ports.ts';
import { startCollector } from '../../test/support/collector.ts';
import { bareEnvironment } from '../../test/support/processes.ts';
import { until, within } from '../../test/support/wait.ts';
import { commonConfig, readConfig } from './config.ts';

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

test('sends slow and failed requests under the name of the process, and what is left when it stops', async () => {
  const collector = await startCollector();
  stops.push(collector.stop);
  const settings = { OTEL_TRACES_SAMPLER_ARG: '0', OTEL_BSP_SCHEDULE_DELAY: '60000' };
  const { child, ask, ended } = await start({ ...collector.environment, ...settings });
  await until('it answers', async () => (await ask()) === 200);
  for (let n = 0; n < 20; n += 1) await ask();
  expect(await ask({ 'X-Takes': '250' })).toBe(200);
  expect(await ask({ 'X-Fails': 'yes' })).toBe(500);
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
  const codes = collector.spans.map(({ status }) => status.code ?? 0);
  expect(codes.filter((code) => code === 2)).toHaveLength(1);
  expect(codes.slice(-2)).toEqual([0, 2]);
  expect(collector.spans.at(-1)).toMatchObject({
    service: 'testing',
    name: 'GET /.well-known/jwks.json',
    kind: 2,
  });
});

test('answers requests while the collector hangs, logs that once, and stops in time', async () => {
  const hanging = createServer(() => undefined);
  await once(hanging.listen(0, '127.0.0.1'), 'listening');
  stops.push(() => (hanging.closeAllConnections(), hanging.close()));
  const endpoint = `http://127.0.0.1:${(hanging.address() as AddressInfo).port}`;
  // The exporter abandons a batch after this time, in ms.
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_TIMEOUT: '50' };
  const queue = { OTEL_BSP_MAX_QUEUE_SIZE: '100', OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '50' };
  const { child, ask, ended, output } = await start({ ...env, ...queue });
  await until('it answers', async () => (await ask()) === 200);
  await until('it complains', () => complaints(output()).length > 0);
  // More than the queue holds.
  for (let n = 0; n < 300; n += 50) {
    const statuses = await Promise.all(Array.from({ length: 50 }, () => ask()));
    expect(new Set(statuses)).toEqual(new Set([200]));
  }
  expect(complaints(output())).toHaveLength(1);
  expect(JSON.parse(complaints(output())[0]!)).not.toHaveProperty('request_id');
  child.kill('SIGTERM');
  expect(await within('the end of the process', ended)).toBe(0);
});

test("loads nothing of OpenTelemetry's SDK without a collector", async () => {
  const { ask, output } = await start({}, ['testing/loaded-modules.ts', 'telemetry.ts']);
  await until('it answers', async () => (await ask()) === 200);
  expect(output()).not.toContain('loaded ');
});

test('says that there are no traces when it was started without the preload', async () => {
  const { ask, output } = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' }, []);
  await until('it answers', async () => (await ask()) === 200);
  expect(output()).toContain('there are no traces');
});

test.each([
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector', 'an address starting with http:// or https://'],
  ['OTEL_TRACES_SAMPLER_ARG', '5%', 'a number from 0 to 1'],
])('refuses %s=%s', (name, value, allowed) => {
  expect(() => readConfig(commonConfig(8090), { [name]: value })).toThrow(
    `${name} must be ${allowed}, not "${value}"`,
  );
});
