import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../../deploy/local/config.ts';
import { Problem } from '../../../deploy/local/problem.ts';
import { runCommand } from '../../../deploy/local/run-command.ts';
import { issuer } from '../own-services.ts';
import { startNode } from './processes.ts';

/** The peers' folder: a separate package, so that other developers do not install them. */
const peersFolder = 'test/bench/peers';

export function versionsOf(...names: string[]): Record<string, string> {
  const file = readFileSync(join(ROOT, peersFolder, 'package.json'), 'utf8');
  const { dependencies } = JSON.parse(file) as { dependencies: Record<string, string> };
  return Object.fromEntries(names.map((name) => [name, dependencies[name]!]));
}

/** Installs the peers' lock file if it has changed. @throws Problem with npm's output */
export async function installPeers(): Promise<void> {
  const folder = join(ROOT, peersFolder);
  const wanted = readFileSync(join(folder, 'package-lock.json'), 'utf8');
  const note = join(folder, 'node_modules', '.installed');
  if (existsSync(note) && readFileSync(note, 'utf8') === wanted) return;
  console.log('Installing the alternatives (npm ci)');
  const { code, output } = await runCommand('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: folder,
  });
  if (code !== 0) throw new Problem(`${output.trimEnd()}\nnpm ci failed in ${peersFolder}: see above.`);
  writeFileSync(note, wanted);
}

export const startPeer = (
  file: string,
  port: number,
  { redis, publicKeyPem }: { redis: string; publicKeyPem: string },
  settings: Record<string, string>,
) =>
  startNode(`${peersFolder}/${file}`, {
    PORT: String(port),
    REDIS_URL: redis,
    PUBLIC_KEY: publicKeyPem,
    ISSUER: issuer,
    NODE_ENV: 'production',
    ...settings,
  });
