// Runs a TypeScript script of this repository on any Node from 20 on: `node deploy/local/bootstrap.mjs <script.ts> [args]`.
// It installs what the lock file says, if that is not there yet, and hands over to the pinned Node of node_modules,
// which runs .ts files as they are. Plain JavaScript without dependencies: nothing is installed when it starts.
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

/** Runs the script in the pinned Node; signals and the exit code pass through. */
function handOver([script, ...args]) {
  const bin = join(root, 'node_modules', '.bin');
  const flags = ['--disable-warning=ExperimentalWarning', '--disable-warning=TimeoutNegativeWarning'];
  const child = spawn(join(bin, 'node'), [...flags, join(root, script), ...args], {
    // The fourth is a channel that closes when this process is gone, however it went: the script can stop then.
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: {
      // Every process of a run starts in half the time when another one has compiled its modules before.
      NODE_COMPILE_CACHE: join(root, '.local', 'compile-cache'),
      ...process.env,
      PATH: `${bin}${delimiter}${process.env.PATH ?? ''}`,
      BOOTSTRAP_BEGAN: String(began),
    },
  });
  // Ctrl-C reaches the whole process group, so the script may get a signal twice: it must not mind.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  stopWithNpm(child);
  child.on('error', (error) => {
    console.error(`The pinned Node does not start: ${error.message}`);
    process.exit(1);
  });
  child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
}

/** npm passes on SIGINT and SIGTERM, but dies of SIGHUP and SIGKILL in silence; then the script has to end too. */
function stopWithNpm(child) {
  if (!process.env.npm_lifecycle_event) return;
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) child.kill('SIGHUP');
  }, 500).unref();
}
