import { expect, test } from '@jest/globals';
import { calledAfterEach } from '../../test/support/called-after-each.ts';
import { startCollector } from '../../test/support/collector.ts';
import { startHttpServer } from '../../test/support/http-server.ts';
import { until, within } from '../../test/support/wait.ts';
import { startServiceProcess } from './testing/service-process.ts';

const stops = calledAfterEach();

async function start(env: Record<string, string>, preloads = ['telemetry.ts']) {
  const settings = { OTEL_TRACES_SAMPLER_ARG: '1', OTEL_BSP_SCHEDULE_DELAY: '20', ...env };
  const service = await startServiceProcess(settings, { preloads });
  stops.push(() => service.child.kill('SIGKILL'));
  await until('it is ready', service.isReady);
  return service;
}

const warnings = (output: string) =>
  output.split('\n').filter((line) => line.includes('traces were dropped'));

test('sends slow and failed requests under the name of the process, and the remaining traces when it stops', async () => {
  const collector = await startCollector();
  stops.push(collector.stop);
  const settings = { OTEL_TRACES_SAMPLER_ARG: '0', OTEL_BSP_SCHEDULE_DELAY: '60000' };
  const { child, ask, ended } = await start({ ...collector.environment, ...settings });
  for (let n = 0; n < 20; n += 1) await ask();
  expect(await ask({ 'X-Takes': '250' })).toBe(200);
  expect(await ask({ 'X-Fails': 'yes' })).toBe(500);
  child.kill('SIGTERM');
  expect(await ended).toMatchObject({ code: 0 });
  const codes = collector.spans.map(({ status }) => status.code ?? 0);
  expect(codes.filter((code) => code === 2)).toHaveLength(1);
  expect(codes.slice(-2)).toEqual([0, 2]);
  const last = { service: 'testing', name: 'GET /.well-known/jwks.json', kind: 2 };
  expect(collector.spans.at(-1)).toMatchObject(last);
});

test('answers requests while the collector hangs, logs that once, and stops in time', async () => {
  const hanging = await startHttpServer(() => undefined);
  stops.push(hanging.close);
  const { child, ask, ended, output } = await start({
    OTEL_EXPORTER_OTLP_ENDPOINT: hanging.origin,
    // The exporter abandons a batch after this time, in ms.
    OTEL_EXPORTER_OTLP_TIMEOUT: '50',
    OTEL_BSP_MAX_QUEUE_SIZE: '100',
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '50',
  });
  await ask();
  await until('the warning is logged', () => warnings(output.stdout).length > 0);
  // More than the queue holds.
  for (let n = 0; n < 300; n += 50) {
    const statuses = await Promise.all(Array.from({ length: 50 }, () => ask()));
    expect(new Set(statuses)).toEqual(new Set([200]));
  }
  expect(warnings(output.stdout)).toHaveLength(1);
  expect(JSON.parse(warnings(output.stdout)[0]!)).not.toHaveProperty('request_id');
  child.kill('SIGTERM');
  expect(await within('the end of the process', ended)).toMatchObject({ code: 0 });
});

test("loads nothing of OpenTelemetry's SDK without a collector", async () => {
  const { output } = await start({}, ['testing/loaded-modules.ts', 'telemetry.ts']);
  expect(output.stdout).not.toContain('loaded ');
});
