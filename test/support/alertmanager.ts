import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Receivers, withReceivers } from '../../deploy/compose/alert-receivers.ts';
import { ROOT } from '../../deploy/local/config.ts';
import { freePort } from '../../deploy/local/ports.ts';
import { findPrograms } from './prometheus-programs.ts';
import { startServer } from './server.ts';

export async function alertmanagerConfig(receivers: Receivers): Promise<string> {
  return withReceivers(await readFile(join(ROOT, 'deploy/alertmanager/alertmanager.yml'), 'utf8'), receivers);
}

/** Starts a real Alertmanager with the project's configuration and group waits of 1 s. It trusts `certificate`. */
export async function startAlertmanager(receivers: Receivers, certificate?: string) {
  const { alertmanager } = await findPrograms();
  const folder = await mkdtemp(join(tmpdir(), 'alertmanager-'));
  const file = join(folder, 'alertmanager.yml');
  const text = await alertmanagerConfig(receivers);
  await writeFile(file, text.replaceAll(/(group_wait|group_interval): \w+/g, '$1: 1s'));
  const address = `127.0.0.1:${await freePort()}`;
  const args = [
    `--config.file=${file}`,
    `--storage.path=${folder}`,
    `--web.listen-address=${address}`,
    '--cluster.listen-address=',
    '--log.level=warn',
  ];
  const env = { ...process.env, ...(certificate && { SSL_CERT_FILE: certificate }) };
  const server = await startServer(alertmanager, args, `http://${address}/-/ready`, env);
  return {
    address,
    send: (alerts: readonly object[]): Promise<Response> =>
      fetch(`http://${address}/api/v2/alerts`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(alerts),
      }),
    async stop(): Promise<void> {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
