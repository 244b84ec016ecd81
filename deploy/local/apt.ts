import { onPath, runCommand } from './run-command.ts';

/** True on Debian and its kin, as root: packages can be installed without asking anybody. */
export const canInstall = (): boolean => process.getuid?.() === 0 && onPath('apt-get') !== undefined;

let updated: Promise<boolean> | undefined;

/**
 * Installs Debian packages; false when they cannot be had. Two calls at once wait for dpkg's lock.
 * @param signal ends it
 */
export async function aptInstall(packages: string[], signal: AbortSignal): Promise<boolean> {
  const run = async (...args: string[]): Promise<boolean> => {
    const flags = ['-q', '-o', 'DPkg::Lock::Timeout=120'];
    const env = { DEBIAN_FRONTEND: 'noninteractive' };
    return (await runCommand('apt-get', [...flags, ...args], { signal, env, within: 170_000 })).code === 0;
  };
  updated ??= run('update');
  return (await updated) && run('install', '-y', '--no-install-recommends', ...packages);
}
