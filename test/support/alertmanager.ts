import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';
import { freePort } from '../../deploy/local/ports.ts';
import { findPrograms } from './prometheus-programs.ts';
import { startServer } from './server.ts';

export interface Alertmanager {
  /** host:port */
  address: string;
  stop(): Promise<void>;
}

/**
 * The setting that names the webhook URL's file. Alertmanager before 0.26, for example Debian 12's, lacks `url_file`.
 */
const urlFile = 'url_file: /etc/alertmanager/webhook-url';

/** Returns the project's configuration with the webhook's URL in it. */
export async function alertmanagerConfig(webhook: string): Promise<string> {
  const text = await readFile(join(ROOT, 'deploy', 'alertmanager', 'alertmanager.yml'), 'utf8');
  if (!text.includes(urlFile)) throw new Error(`alertmanager.yml has no ${urlFile}`);
  return text.replace(urlFile, `url: ${webhook}`);
}

/** Starts a real Alertmanager with the project's configuration, whose group waits are shortened to one second. */
export async function startAlertmanager(webhook: string): Promise<Alertmanager> {
  const { alertmanager } = await findPrograms();
  const folder = await mkdtemp(join(tmpdir(), 'alertmanager-'));
  const file = join(folder, 'alertmanager.yml');
  const text = await alertmanagerConfig(webhook);
  await writeFile(file, text.replaceAll(/(group_wait|group_interval): \w+/g, '$1: 1s'));
  const address = `127.0.0.1:${await freePort()}`;
  const args = [
    `--config.file=${file}`,
    `--storage.path=${folder}`,
    `--web.listen-address=${address}`,
    '--cluster.listen-address=',
    '--log.level=warn',
  ];
  const server = await startServer(alertmanager, args, `http://${address}/-/ready`);
  return {
    address,
    async stop() {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
