// Runs `npm ci` if node_modules differs from package-lock.json. Plain JavaScript, because it runs before any package is installed.
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Installs missing packages, one run at a time. @returns {Promise<string | undefined>} an error message */
export async function ensureInstalled(root) {
  if (isInstalled(root)) return undefined;
  const lock = join(root, '.local', 'install.lock');
  try {
    mkdirSync(join(root, '.local'), { recursive: true, mode: 0o700 });
    console.log('Installing packages (npm ci)');
    try {
      while (!takeLock(lock)) await sleep(300);
      if (!isInstalled(root) && !(await npmCi(root, lock)))
        return 'npm ci failed: see above. Check the network, then start again. The Node that it installs does not run on Alpine, and on NixOS only with nix-ld.';
    } finally {
      rmSync(lock, { force: true });
    }
  } catch (error) {
    const advice = error.code === 'ENOSPC' ? 'free some space on the disk' : 'make it writable for this user';
    return `Cannot write to ${join(root, '.local')} (${error.code ?? error.message}): ${advice}.`;
  }
  return hasNode(root)
    ? undefined
    : 'node_modules/.bin/node does not run: allow the install script of the package "node" (npm config ignore-scripts). On Linux it needs glibc, which Alpine lacks, and on NixOS nix-ld.';
}

/** As its last step, npm lists the installed packages in node_modules/.package-lock.json. */
function isInstalled(root) {
  if (!hasNode(root)) return false;
  try {
    const wanted = packagesOf(join(root, 'package-lock.json'));
    const present = packagesOf(join(root, 'node_modules', '.package-lock.json'));
    return Object.entries(wanted).every(([path, entry]) => {
      if (path === '') return true;
      const found = present[path];
      return found ? found.version === entry.version : entry.optional === true;
    });
  } catch {
    return false;
  }
}

const packagesOf = (file) => JSON.parse(readFileSync(file, 'utf8')).packages;

/** Runs the pinned Node, because node_modules may have been installed on another platform. */
function hasNode(root) {
  const node = join(root, 'node_modules', '.bin', 'node');
  return spawnSync(node, ['--version'], { env: {} }).status === 0;
}

/** Returns whether this process holds the lock. Removes the lock of a process that has ended. */
function takeLock(lock) {
  try {
    writeFileSync(lock, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
  try {
    const age = Date.now() - statSync(lock).mtimeMs;
    const holder = Number(readFileSync(lock, 'utf8'));
    if (age > 10 * 60_000 || (holder > 0 && !isAlive(holder))) rmSync(lock, { force: true });
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
  return false;
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Resolves with whether npm succeeded. npm shows its progress. */
function npmCi(root, lock) {
  return new Promise((resolve) => {
    // The launcher consists of development packages, which npm omits if NODE_ENV is "production".
    const npm = spawn('npm', ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'], {
      cwd: root,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    npm.on('error', (error) => {
      console.error(`npm cannot be started: ${error.message}`);
      resolve(false);
    });
    npm.on('close', (code) => resolve(code === 0));
    // The lock names npm's pid: if this process is killed, npm continues and others must still wait for it.
    if (npm.pid) writeFileSync(lock, String(npm.pid));
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
      process.once(signal, () => {
        npm.kill('SIGTERM');
        npm.once('close', () => process.exit(1));
      });
  });
}
