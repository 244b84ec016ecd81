import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream, existsSync, renameSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { environmentWith } from './config.ts';
import { sendSignal } from './identity.ts';
import { Problem } from './problem.ts';
import type { State } from './state.ts';
import { seconds, type Terminal } from './terminal.ts';

/** Definition of a long-running process: start command, readiness check and stop signal. */
export interface ProcessSpec {
  name: string;
  command: string;
  args: string[];
  cwd: string;
  /** Called at each start, because secrets change between starts. */
  env?: () => Record<string, string>;
  /** Throws while the process is not ready. Repeated until `readyWithinMs` is over. */
  ready: () => Promise<void>;
  readyWithinMs: number;
  /** Signal for a graceful shutdown. */
  stopSignal: NodeJS.Signals;
  prepare?: () => Promise<unknown>;
  onLine?: (line: string) => void;
}

export interface SupervisorContext {
  state: Pick<State, 'path' | 'record' | 'forget'>;
  terminal: Pick<Terminal, 'line'>;
  /** Aborts every wait when the stack stops. */
  signal: AbortSignal;
  /** Called when the process is ready again after a restart. */
  onRestart: () => void;
  /** Called when the restarts have failed and the stack must stop. */
  onAbandoned: (problem: Problem) => void;
  /** Pauses between restarts in ms. Default: 250 ms doubling up to 4 s. */
  pauseMs?: (deaths: number) => number;
}

export type Supervised = ReturnType<typeof supervise>;

const maxDeaths = 5;
const deathWindowMs = 60_000;
const keptLines = 20;

const defaultPauseMs = (deaths: number): number => Math.min(250 * 2 ** (deaths - 1), 4_000);

/** Supervises a process: starts it, writes its log, restarts it with backoff after a crash, and stops it. */
export function supervise(spec: ProcessSpec, context: SupervisorContext) {
  const { name, stopSignal, readyWithinMs } = spec;
  const { state, terminal, signal, pauseMs = defaultPauseMs } = context;
  const logFile = state.path('logs', `${name}.log`);
  // Keeps the log of the previous run, which may be the run that crashed.
  if (existsSync(logFile)) renameSync(logFile, `${logFile}.old`);
  // A full disk must not end the run. It ends the stream, so that the next line opens another one.
  const openLog = () => createWriteStream(logFile, { flags: 'a', mode: 0o600 }).on('error', () => {});
  let log = openLog();
  const lines: string[] = [];
  let child: ChildProcess | undefined;
  let ended = Promise.resolve('');
  let deaths: number[] = [];
  let isStopping = false;

  const problem = (message: string): Problem => new Problem(`${message}; its log is ${logFile}.`, lines);

  const killGroup = (): void => sendSignal(-(child?.pid ?? 0), 'SIGKILL');

  function keepLine(line: string): void {
    if (log.errored) log = openLog();
    log.write(`${line}\n`);
    lines.push(line);
    if (lines.length > keptLines) lines.shift();
    spec.onLine?.(line);
  }

  /** Starts the process; resolves with its exit code or signal. */
  function run(): Promise<string> {
    // A process group of its own, so that Ctrl-C reaches only the launcher, which stops the processes in order.
    const started = spawn(spec.command, spec.args, {
      cwd: spec.cwd,
      env: environmentWith(spec.env?.() ?? {}),
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child = started;
    try {
      if (started.pid) state.record(name, started.pid, stopSignal);
    } catch (error) {
      // The process runs: a full disk must not end the run.
      terminal.line(`${name} could not be recorded: ${String(error)}`);
    }
    for (const input of [started.stdout, started.stderr]) createInterface({ input }).on('line', keepLine);
    return new Promise((resolve) => {
      const end = (how: string): void => {
        child = undefined;
        state.forget(name);
        resolve(how);
      };
      started.on('error', (error) => !started.pid && end(error.message));
      started.on('exit', (code, exitSignal) => {
        killGroup(); // a grandchild could hold the port or the files
        // The pipe may still contain its last lines.
        const closed = new Promise((done) => started.once('close', done));
        void Promise.race([closed, sleep(500)]).then(() => end(exitSignal ?? `exit code ${code}`));
      });
    });
  }

  /** Starts the process and waits until it is ready. */
  async function launch(): Promise<void> {
    await spec.prepare?.();
    signal.throwIfAborted();
    let death: string | undefined;
    ended = run().then((how) => (death = how));
    const deadline = Date.now() + readyWithinMs;
    for (;;) {
      signal.throwIfAborted();
      const isReady = spec.ready().then(
        () => true,
        () => false,
      );
      const ready = await Promise.race([isReady, ended.then(() => false)]);
      if (death !== undefined) throw problem(`${name} ended while starting (${death})`);
      if (ready) return;
      if (Date.now() > deadline) {
        killGroup();
        throw problem(`${name} was not ready within ${seconds(readyWithinMs)}`);
      }
      await Promise.race([sleep(50), ended]);
    }
  }

  async function restart(how: string): Promise<void> {
    const [died, pause] = [Date.now(), pauseMs(deaths.length)];
    terminal.line(`${name} died (${how}), starting it again in ${seconds(pause)}`);
    await sleep(pause, undefined, { signal });
    await launch();
    terminal.line(`${name} is back after ${seconds(Date.now() - died)} (pid ${child?.pid})`);
    try {
      context.onRestart();
    } catch (error) {
      terminal.line(`The stack file could not be written: ${String(error)}`);
    }
  }

  /** Restarts the process after each crash until the stack stops. */
  async function keepRunning(): Promise<void> {
    for (;;) {
      const how = await ended;
      if (isStopping || signal.aborted) return;
      const now = Date.now();
      deaths = [...deaths.filter((at) => now - at < deathWindowMs), now];
      if (deaths.length >= maxDeaths)
        return context.onAbandoned(problem(`${name} died ${maxDeaths} times within a minute`));
      try {
        await restart(how);
      } catch (error) {
        if (signal.aborted || isStopping) return;
        // After a Problem the process has died, was killed as not ready, or was not started: each counts as a death.
        if (!(error instanceof Problem))
          return context.onAbandoned(problem(`${name} cannot be started again: ${String(error)}`));
        terminal.line(error.message);
      }
    }
  }

  return {
    name,
    /** The pid; 0 while the process is not running. */
    get pid() {
      return child?.pid ?? 0;
    },
    /** Resolves when the process is ready. @throws Problem with the end of its log if it dies earlier or times out */
    async start(): Promise<void> {
      await launch();
      void keepRunning();
    },
    /** Sends the stop signal, and SIGKILL after `graceMs`; resolves when the process has ended. */
    async stop(graceMs: number): Promise<void> {
      isStopping = true;
      child?.kill(stopSignal);
      const timer = setTimeout(killGroup, graceMs);
      await ended;
      clearTimeout(timer);
      await new Promise((written) => log.end(written));
    },
  };
}
