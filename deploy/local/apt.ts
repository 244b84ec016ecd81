import { onPath, runCommand } from './run-command.ts';

/** True for root on Debian and its derivatives, where packages can be installed without a prompt. */
export const canInstall = (): boolean => process.getuid?.() === 0 && onPath('apt-get') !== undefined;

let updated: Promise<boolean> | undefined;

/** Installs Debian packages and returns whether this succeeded. Concurrent calls wait for dpkg's lock. */
export async function aptInstall(packages: string[], signal: AbortSignal): Promise<boolean> {
  const options = { signal, env: { DEBIAN_FRONTEND: 'noninteractive' }, within: 170_000 };
  const run = async (...args: string[]): Promise<boolean> =>
    (await runCommand('apt-get', ['-q', '-o', 'DPkg::Lock::Timeout=120', ...args], options)).code === 0;
  updated ??= run('update');
  if (!(await updated)) {
    // Another process may hold the lock of the package lists, so the next call tries again.
    updated = undefined;
    return false;
  }
  // A killed apt-get leaves dpkg interrupted, and apt-get then refuses every installation.
  await runCommand('dpkg', ['--configure', '-a'], options);
  return run('install', '-y', '--no-install-recommends', ...packages);
}
