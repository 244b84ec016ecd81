import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { DOWNLOADS, ROOT } from '../../deploy/local/config.ts';
import { runCommand } from '../../deploy/local/run-command.ts';
import { withDatabase } from './connections.ts';
import { startService } from './programs.ts';
import { createTestDatabase } from './test-database.ts';
import { useStarted } from './use-started.ts';
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

/** Unpacks an earlier release beside a new database, whose upgrade creates the role of `roleUrl`. */
export function useEarlierRelease(service: string) {
  const role = `test_${service.replace('-', '_')}_${process.pid}`;
  return useStarted(async () => {
    const folder = await unpackRelease('eb38bc0');
    const { url, drop } = await createTestDatabase();
    const roleUrl = Object.assign(new URL(url), { username: role, password: 'a-password-of-the-role' }).href;
    async function stop(): Promise<void> {
      await withDatabase(url, (owner) => owner.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`));
      await drop();
      rmSync(folder, { recursive: true });
    }
    return { folder, url, roleUrl, stop };
  });
}

export type ReleaseProcess = Awaited<ReturnType<typeof startRelease>>;

/** Starts a service of the release in `root`, and waits until it is ready. */
export async function startRelease(root: string, service: string, env: Record<string, string>) {
  const { child, ended, isReady, origin } = await startService(`services/${service}/main.ts`, { env, root });
  await until(`${service} is ready`, isReady);
  return {
    origin,
    /** Rejects unless the process exits with 0. */
    async stop(): Promise<void> {
      child.kill('SIGTERM');
      const { code, stderr } = await ended;
      if (code !== 0) throw new Error(`${service} exited with ${code}: ${stderr}`);
    },
  };
}
