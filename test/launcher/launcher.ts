import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ROOT } from '../../deploy/local/config.ts';
import { identityOf, type Identity, isRunning } from '../../deploy/local/identity.ts';
import type { Stack } from '../../deploy/local/stack-file.ts';

/** Longer than anything takes that is not hung. */
export const LIMIT_MS = 150_000;

/** Waits for a condition; fails, with what there is to say about it, when it does not come. */
export async function until<T>(
  condition: () => T | undefined | false | Promise<T | undefined | false>,
  describe: () => string,
): Promise<T> {
  const deadline = Date.now() + LIMIT_MS;
  for (;;) {
    const value = await condition();
    if (value !== undefined && value !== false) return value;
    if (Date.now() > deadline) throw new Error(`waited too long; ${describe()}`);
    await sleep(100);
  }
}

/** A launcher that runs, with all it has printed so far. */
export interface Launcher {
  child: ChildProcess;
  output: () => string;
  /** Resolves when it has printed that. */
  printed: (pattern: RegExp) => Promise<RegExpExecArray>;
  /** Its exit code, once it has ended. */
  ended: Promise<number | null>;
  /** As Ctrl-C on a terminal: the signal reaches the whole process group. */
  interrupt: () => void;
}

export function newState(): string {
  return mkdtempSync(join(tmpdir(), 'launcher-test-'));
}

/** Runs a command of the repository as a user would, in a process group of its own. */
export function launch(command: string[], env: Record<string, string | undefined>): Launcher {
  const [program = '', ...args] = command;
  const inherited = {
    ...process.env,
    STACK_FILE: undefined,
    NODE_OPTIONS: undefined,
    JEST_WORKER_ID: undefined,
  };
  const child = spawn(program, args, {
    cwd: ROOT,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...inherited, ...env },
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += String(chunk)));
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  let over = false;
  void ended.then(() => (over = true));
  return {
    child,
    output: () => text,
    ended,
    interrupt: () => process.kill(-(child.pid ?? 0), 'SIGINT'),
    printed: (pattern) =>
      until(
        () => {
          const found = pattern.exec(text);
          if (!found && over) throw new Error(`it ended before it printed ${pattern}:\n${text}`);
          return found ?? undefined;
        },
        () => `no ${pattern} in:\n${text}`,
      ),
  };
}

export const npmStart = ['npm', 'start'];

export function stackOf(state: string): Stack {
  return JSON.parse(readFileSync(join(state, 'stack.json'), 'utf8')) as Stack;
}

/** Every process that the launcher has noted as its own, by name. */
export function processesOf(state: string): Record<string, Identity> {
  const folder = join(state, 'run');
  if (!existsSync(folder)) return {};
  const files = readdirSync(folder).filter((file) => file.endsWith('.json'));
  return Object.fromEntries(
    files.map((file) => [
      file.slice(0, -5),
      JSON.parse(readFileSync(join(folder, file), 'utf8')) as Identity,
    ]),
  );
}

/** The pid of the launcher itself, which npm and the bootstrap stand in front of. */
export function launcherPid(state: string): number {
  return (JSON.parse(readFileSync(join(state, 'launcher.json'), 'utf8')) as Identity).pid;
}

/** Those of the processes that still run. */
export function alive(processes: Record<string, Identity>): string[] {
  return Object.keys(processes).filter((name) => isRunning(processes[name]!));
}

/** Ends a launcher and what it left, however the test went, and removes its state. */
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
