import { expect, test } from '@jest/globals';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';
import { runCommand } from '../../deploy/local/run-command.ts';
import { alertmanagerConfig, startAlertmanager } from '../support/alertmanager.ts';
import { findPrograms } from '../support/prometheus-programs.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { useStarted } from '../support/use-started.ts';
import { until } from '../support/wait.ts';

/** The time limit includes the download of the programs. */
const downloadMs = 180_000;
/** Nothing listens there; test/proof/alerts.test.ts tests delivery. */
const receiver = 'http://127.0.0.1:1/';
const alertmanager = useStarted(() => startAlertmanager({ webhook: receiver }), downloadMs);

type Labels = Record<string, string>;

const post = (alerts: Labels[], more: Labels = {}) =>
  alertmanager.send(alerts.map((labels) => ({ labels, ...more })));

/** Fires the alerts and expects that exactly `expected` are sent, as `name service`. Alertmanager inhibits with a delay. */
async function expectSent(alerts: Labels[], expected: string[]): Promise<void> {
  // Alertmanager processes alerts in order: if it inhibits the first of these two, it knows all others.
  const all = [...alerts, alert('SlowQueries', 'pulse'), alert('ServiceDown', 'pulse')];
  expect((await post(all)).status).toBe(200);
  await until(`only ${expected.join(', ')} are sent`, async () => {
    const response = await fetch(`http://${alertmanager.address}/api/v2/alerts?inhibited=false`);
    const sent = ((await response.json()) as { labels: Labels }[]).map(({ labels }) => labels);
    const names = sent.map(({ alertname, service }) => `${alertname} ${service}`);
    expect(names.toSorted()).toEqual([...expected, 'ServiceDown pulse'].toSorted());
    return true;
  });
  await post(all, { endsAt: new Date(Date.now() - 1_000).toISOString() });
}

const alert = (alertname: string, service: string): Labels => ({ alertname, service });

test('amtool accepts the configuration', async () => {
  const { amtool } = await findPrograms();
  const file = join(temporaryFolder(), 'alertmanager.yml');
  await writeFile(file, await alertmanagerConfig({ webhook: receiver }));
  const { code, output } = await runCommand(amtool, ['check-config', file]);
  expect([code, output]).toEqual([0, expect.stringContaining('SUCCESS')]);
});

test('the webhook file has an absolute path, because a relative one depends on the working directory', async () => {
  const text = await readFile(join(ROOT, 'deploy', 'alertmanager', 'alertmanager.yml'), 'utf8');
  expect(text).toMatch(/url_file: \/\S+$/m);
});

test('a service that is down inhibits its own alerts only', async () => {
  const own = ['SlowQueries', 'MetricMissing', 'FailedJobs'].map((name) => alert(name, 'auth'));
  const alerts = [alert('ServiceDown', 'auth'), ...own, alert('SlowQueries', 'letters')];
  await expectSent(alerts, ['ServiceDown auth', 'SlowQueries letters']);
});

test('a service with few requests that is down does not inhibit alerts on client requests', async () => {
  const clients = ['ErrorRateHigh', 'ApiLatencyP95High'].map((name) => alert(name, 'gateway'));
  // expectSent also sends ServiceDown of pulse.
  const alerts = [...clients, alert('ServiceDown', 'devices')];
  await expectSent(alerts, ['ApiLatencyP95High gateway', 'ErrorRateHigh gateway', 'ServiceDown devices']);
});

const inhibited = {
  ServiceDown: 'ErrorRateHigh ApiLatencyP95High RouteLatencyP95High AvailabilityBurnFast LatencyBurnSlow',
  ErrorRateHigh: 'AvailabilityBurnFast AvailabilityBurnSlow',
  ApiLatencyP95High: 'LatencyBurnFast LatencyBurnSlow',
  AvailabilityBurnFast: 'AvailabilityBurnSlow',
  LatencyBurnFast: 'LatencyBurnSlow',
  InvalidationConsumerStalled: 'InvalidationQueueLong',
};
test.each(
  Object.entries(inhibited).flatMap(([cause, names]) =>
    names.split(' ').map((name) => [cause, name] as const),
  ),
)('%s inhibits %s', async (cause, consequence) => {
  const alerts = [alert(cause, 'content-cache'), alert(consequence, 'gateway')];
  await expectSent(alerts, [`${cause} content-cache`]);
});

test('ApiLatencyP95High inhibits RouteLatencyP95High, except for routes with a limit of their own', async () => {
  const routes = ['usual', 'login', 'upload'].map((name) => ({
    ...alert('RouteLatencyP95High', 'gateway'),
    class: name,
  }));
  const own = 'RouteLatencyP95High gateway';
  await expectSent(
    [alert('ApiLatencyP95High', 'gateway'), ...routes],
    ['ApiLatencyP95High gateway', own, own],
  );
});

test.each([
  ['ApiLatencyP95High', 'ErrorRateHigh'],
  ['AvailabilityBurnFast', 'LatencyBurnFast'],
  ['FailedJobs', 'InvalidationConsumerStalled'],
])('sends both %s and %s', async (one, other) => {
  const alerts = [alert(one, 'gateway'), alert(other, 'gateway')];
  await expectSent(alerts, [`${one} gateway`, `${other} gateway`]);
});
