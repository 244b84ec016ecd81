import { onPath, runCommand } from './run-command.ts';

/** True for root on Debian and its derivatives, where packages can be installed without a prompt. */
export const canInstall = (): boolean => process.getuid?.() === 0 && onPath('apt-get') !== undefined;

let updated: Promise<boolean> | undefined;

/** Installs Debian packages and returns whether this succeeded. Concurrent calls wait for dpkg's lock. */
export async function aptInstall(packages: string[], signal: AbortSignal): Promise<boolean> {
  const run = async (...args: string[]): Promise<boolean> => {
    const flags = ['-q', '-o', 'DPkg::Lock::Timeout=120'];
    const env = { DEBIAN_FRONTEND: 'noninteractive' };
    return (await runCommand('apt-get', [...flags, ...args], { signal, env, within: 170_000 })).code === 0;
  };
  updated ??= run('update');
  // Another process may hold the lock of the package lists: the next call tries again.
  if (!(await updated)) updated = undefined;
  if (updated === undefined) return false;
  // A killed apt-get leaves dpkg interrupted, and apt-get then refuses every installation.
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  await runCommand('dpkg', ['--configure', '-a'], { signal, env, within: 170_000 });
  return run('install', '-y', '--no-install-recommends', ...packages);
}
