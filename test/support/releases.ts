import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { DOWNLOADS, ROOT } from '../../deploy/local/config.ts';
import { runCommand } from '../../deploy/local/run-command.ts';
import { freeRow } from './ports.ts';
import { bareEnvironment } from './processes.ts';
import { until } from './wait.ts';

/** Unpacks an earlier commit, which uses the libraries of this one. Returns its folder. */
export async function unpackRelease(commit: string): Promise<string> {
  mkdirSync(DOWNLOADS, { recursive: true });
  const folder = mkdtempSync(join(DOWNLOADS, 'release-'));
  const archive = `git archive ${commit} | tar -x -C '${folder}'`;
  const { code, output } = await runCommand('bash', ['-o', 'pipefail', '-c', archive], { cwd: ROOT });
  if (code !== 0) throw new Error(`the whole history is needed (git fetch --unshallow): ${output}`);
  const link = (from: string, to: string) => symlinkSync(realpathSync(from), join(folder, to));
  mkdirSync(join(folder, 'node_modules/@content-platform'), { recursive: true });
  for (const name of readdirSync(join(ROOT, 'node_modules')).filter((one) => one !== '@content-platform'))
    link(join(ROOT, 'node_modules', name), `node_modules/${name}`);
  for (const name of readdirSync(join(folder, 'services'))) {
    link(join(folder, 'services', name), `node_modules/@content-platform/${name}`);
    const nested = join(ROOT, 'services', name, 'node_modules');
    if (existsSync(nested)) link(nested, `services/${name}/node_modules`);
  }
  return folder;
}

export type ReleaseProcess = Awaited<ReturnType<typeof startRelease>>;

/** Starts a service of the release in `root`, and waits until it is ready. */
export async function startRelease(root: string, service: string, settings: Record<string, string>) {
  const port = await freeRow(1);
  const child = spawn(process.execPath, [join(root, 'services', service, 'main.ts')], {
    cwd: root,
    env: { ...bareEnvironment, PORT: String(port), ...settings },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ready = async () => (await fetch(`http://127.0.0.1:${port + 1000}/health/ready`)).status === 200;
  await until(`${service} is ready`, ready);
  return {
    origin: `http://127.0.0.1:${port}`,
    kill: () => child.kill('SIGKILL'),
    /** Rejects unless the process exits with 0. */
    async stop(): Promise<void> {
      const ended = once(child, 'close') as Promise<[number | null]>;
      child.kill('SIGTERM');
      const [code] = await ended;
      if (code !== 0) throw new Error(`${service} exited with ${code}`);
    },
  };
}
