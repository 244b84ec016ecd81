// Runs a TypeScript script of this clone on Node 20.19 or newer: `node deploy/local/bootstrap.mjs <script.ts> [args]`.
// Installs the packages of the lock file if they are missing, then starts the script with the pinned Node of node_modules,
// which runs TypeScript directly. Plain JavaScript without dependencies, because it runs before any package is installed.
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const began = Date.now();
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(
    `Node ${process.versions.node} is too old: install Node 20.19 or newer (https://nodejs.org).`,
  );
  process.exit(1);
}

const { ensureInstalled } = await import('./install.mjs');
const failure = await ensureInstalled(root);
if (failure) {
  console.error(failure);
  process.exit(1);
}
handOver(process.argv.slice(2));

/** Runs the script with the pinned Node. Forwards signals and ends with the exit code of the script. */
function handOver([script, ...args]) {
  const bin = join(root, 'node_modules', '.bin');
  const flags = ['--disable-warning=ExperimentalWarning', '--disable-warning=TimeoutNegativeWarning'];
  const child = spawn(join(bin, 'node'), [...flags, join(root, script), ...args], {
    // The fourth is an IPC channel. It closes when this process ends for any reason, so that the script can stop.
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: {
      // With the shared compile cache a process starts in half the time.
      NODE_COMPILE_CACHE: join(root, '.local', 'compile-cache'),
      ...process.env,
      // The user's settings for another PostgreSQL server would also apply to the platform's connection pools.
      PGSSLMODE: undefined,
      PGOPTIONS: undefined,
      PATH: `${bin}${delimiter}${process.env.PATH ?? ''}`,
      BOOTSTRAP_BEGAN: String(began),
    },
  });
  // Ctrl-C reaches the whole process group, so the script may get a signal twice and must tolerate that.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  stopWithNpm(child);
  child.on('error', (error) => {
    console.error(`The pinned Node does not start: ${error.message}`);
    process.exit(1);
  });
  child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
}

/** npm forwards SIGINT and SIGTERM but not SIGHUP and SIGKILL. This stops the script when npm has ended. */
function stopWithNpm(child) {
  if (!process.env.npm_lifecycle_event) return;
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) child.kill('SIGHUP');
  }, 500).unref();
}
