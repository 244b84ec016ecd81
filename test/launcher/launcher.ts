import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../../deploy/local/config.ts';
import { identityOf, type Identity, isRunning, sendSignal } from '../../deploy/local/identity.ts';
import type { Stack } from '../../deploy/local/stack-file.ts';
import { readJson } from '../../deploy/local/state.ts';
import { until } from '../support/wait.ts';

/** A launcher that takes longer hangs. */
export const limitMs = 300_000;

export const newState = (): string => mkdtempSync(join(tmpdir(), 'launcher tést-'));

/** Runs a command of the repository in a new process group. */
export function launch(command: string[], env: Record<string, string | undefined>) {
  const [program = '', ...args] = command;
  const removed = { STACK_FILE: undefined, NODE_OPTIONS: undefined, JEST_WORKER_ID: undefined };
  // A developer may have it for another database.
  const foreign = { PGSSLMODE: 'require' };
  const child = spawn(program, args, {
    cwd: ROOT,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...removed, ...foreign, ...env },
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += String(chunk)));
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  // Ctrl-C in `npm test` ends jest's workers with SIGTERM, which this group does not get.
  const end = (): void => {
    sendSignal(-(child.pid ?? 0), 'SIGINT');
    process.exit(1);
  };
  process.once('SIGTERM', end);
  child.once('close', () => process.removeListener('SIGTERM', end));
  return {
    child,
    output: () => text,
    ended,
    /** Sends SIGINT to the whole process group, as Ctrl-C in a terminal does. */
    interrupt: () => process.kill(-(child.pid ?? 0), 'SIGINT'),
    /** Resolves once the output matches. */
    printed: (pattern: RegExp) => {
      const found = (): RegExpExecArray => pattern.exec(text) ?? fail(`no ${pattern} in:\n${text}`);
      return Promise.race([until(`it prints ${pattern}`, found, limitMs), ended.then(found)]);
    },
  };
}
export type Launcher = ReturnType<typeof launch>;

function fail(message: string): never {
  throw new Error(message);
}

export const npmStart = ['npm', 'start'];
/** The command of `npm start`, for a PATH without npm. */
export const startCommand = [process.execPath, 'deploy/local/bootstrap.mjs', 'deploy/local/start.ts'];

export const stackOf = (state: string): Stack => readJson<Stack>(join(state, 'stack.json'))!;

/** Returns every process that the launcher has recorded, by name. */
export function processesOf(state: string): Record<string, Identity> {
  const folder = join(state, 'run');
  const files = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith('.json')) : [];
  return Object.fromEntries(
    files.map((file) => [file.slice(0, -5), readJson<Identity>(join(folder, file))!]),
  );
}

/** Returns the pid of the launcher itself, which is a child of npm and the bootstrap. */
export const launcherPid = (state: string): number => readJson<Identity>(join(state, 'launcher.json'))!.pid;
export function alive(processes: Record<string, Identity>): string[] {
  return Object.keys(processes).filter((name) => isRunning(processes[name]!));
}

/** Ends a launcher and its processes, even after a failed test, and deletes its state. */
export async function cleanUp(state: string, ...launchers: (Launcher | undefined)[]): Promise<void> {
  for (const launcher of launchers) {
    if (!launcher || launcher.child.exitCode !== null || launcher.child.signalCode) continue;
    launcher.interrupt();
    await launcher.ended;
  }
  for (const { pid, began } of Object.values(processesOf(state)))
    if (identityOf(pid)?.began === began) process.kill(pid, 'SIGKILL');
  rmSync(state, { recursive: true, force: true });
}
