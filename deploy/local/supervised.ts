import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream, existsSync, renameSync, type WriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { environmentWith } from './config.ts';
import { Problem } from './problem.ts';
import type { State } from './state.ts';
import { seconds, type Terminal } from './terminal.ts';

/** A long-running process: how it is started, when it is ready, how it is stopped. */
export interface ProcessSpec {
  name: string;
  command: string;
  args: string[];
  cwd: string;
  /** Asked at each start: a secret may be another one then. */
  env?: () => Record<string, string>;
  /** Throws while the process cannot do its job yet; is asked again until `readyWithinMs` is over. */
  ready: () => Promise<void>;
  readyWithinMs: number;
  /** The signal upon which it finishes what is under way and ends. */
  stopSignal: NodeJS.Signals;
  /** What has to be done before each start. */
  prepare?: () => Promise<unknown>;
  /** Sees every line that it prints. */
  onLine?: (line: string) => void;
}

export interface Surroundings {
  state: State;
  terminal: Terminal;
  /** Ends every wait: the stack is being stopped. */
  signal: AbortSignal;
  /** Started again by itself and ready. */
  onRestart: () => void;
  /** It cannot be kept up: the run has to end. */
  onGivenUp: (problem: Problem) => void;
}

const DEATHS = 5;
const WITHIN_MS = 60_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 4_000;
const READY_EVERY_MS = 50;
const LAST_WORDS_MS = 500;
const KEPT_LINES = 20;

/** Keeps one process running: starts it, writes its log, starts it again with backoff when it dies, stops it. */
export class Supervised {
  readonly spec: ProcessSpec;
  readonly #around: Surroundings;
  readonly #log: WriteStream;
  #child: ChildProcess | undefined;
  #ended: Promise<string> = Promise.resolve('');
  #lines: string[] = [];
  #deaths: number[] = [];
  #stopping = false;

  constructor(spec: ProcessSpec, around: Surroundings) {
    this.spec = spec;
    this.#around = around;
    const file = around.state.path('logs', `${spec.name}.log`);
    // The run before this one stays readable: it may be what crashed.
    if (existsSync(file)) renameSync(file, `${file}.old`);
    this.#log = createWriteStream(file, { mode: 0o600 });
    this.#log.on('error', () => {}); // a full disk must not end the run
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /**
   * Resolves when the process is ready for the first time.
   * @throws Problem with the end of its log when it dies before that or takes too long
   */
  async start(): Promise<void> {
    await this.#launch();
    void this.#keepUp();
  }

  /** Stops it with its signal, with SIGKILL after `graceMs`; resolves when it is gone. Harmless when it is not up. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    this.#child?.kill(this.spec.stopSignal);
    const timer = setTimeout(() => this.#killGroup(), graceMs);
    await this.#ended;
    clearTimeout(timer);
    await new Promise((written) => this.#log.end(written));
  }

  /** Starts the process and waits until it is ready. */
  async #launch(): Promise<void> {
    const { name, readyWithinMs } = this.spec;
    await this.spec.prepare?.();
    this.#around.signal.throwIfAborted();
    let death: string | undefined;
    this.#ended = this.#spawn().then((how) => (death = how));
    const deadline = Date.now() + readyWithinMs;
    for (;;) {
      this.#around.signal.throwIfAborted();
      const ready = await Promise.race([this.#isReady(), this.#ended.then(() => false)]);
      if (death !== undefined) throw this.#problem(`${name} ended while starting (${death})`);
      if (ready) return;
      if (Date.now() > deadline) {
        this.#killGroup();
        throw this.#problem(`${name} was not ready within ${seconds(readyWithinMs)}`);
      }
      await Promise.race([sleep(READY_EVERY_MS), this.#ended]);
    }
  }

  #isReady(): Promise<boolean> {
    return this.spec.ready().then(
      () => true,
      () => false,
    );
  }

  /** Resolves with how the process ended. */
  #spawn(): Promise<string> {
    const { name, command, args, cwd, env, stopSignal } = this.spec;
    // A group of its own: Ctrl-C on the terminal reaches the launcher alone, which stops things in order.
    const child = spawn(command, args, {
      cwd,
      env: environmentWith(env?.() ?? {}),
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    if (child.pid) this.#around.state.record(name, child.pid, stopSignal);
    for (const input of [child.stdout, child.stderr])
      createInterface({ input }).on('line', (line) => this.#note(line));
    return new Promise((resolve) => {
      const end = (how: string): void => {
        this.#child = undefined;
        this.#around.state.forget(name);
        resolve(how);
      };
      child.on('error', (error) => !child.pid && end(error.message));
      child.on('exit', (code, signal) => {
        this.#killGroup(); // nothing of it may be left that holds its port or its files
        // Its last words may still be in the pipe.
        const read = new Promise((done) => child.once('close', done));
        void Promise.race([read, sleep(LAST_WORDS_MS)]).then(() => end(signal ?? `exit code ${code}`));
      });
    });
  }

  #note(line: string): void {
    this.#log.write(`${line}\n`);
    this.#lines.push(line);
    if (this.#lines.length > KEPT_LINES) this.#lines.shift();
    this.spec.onLine?.(line);
  }

  #killGroup(): void {
    try {
      if (this.#child?.pid) process.kill(-this.#child.pid, 'SIGKILL');
    } catch {
      // nobody of the group is left
    }
  }

  #problem(message: string): Problem {
    const log = this.#around.state.path('logs', `${this.spec.name}.log`);
    return new Problem(`${message}; its log is ${log}.`, this.#lines);
  }

  /** Runs for as long as the process is wanted: each time it dies, it is started again. */
  async #keepUp(): Promise<void> {
    const { terminal, signal, onRestart, onGivenUp } = this.#around;
    const { name } = this.spec;
    for (;;) {
      const how = await this.#ended;
      if (this.#stopping || signal.aborted) return;
      const now = Date.now();
      this.#deaths = [...this.#deaths.filter((at) => now - at < WITHIN_MS), now];
      if (this.#deaths.length >= DEATHS)
        return onGivenUp(this.#problem(`${name} died ${DEATHS} times within a minute`));
      const pause = Math.min(FIRST_PAUSE_MS * 2 ** (this.#deaths.length - 1), LONGEST_PAUSE_MS);
      terminal.line(`${name} died (${how}), starting it again in ${seconds(pause)}`);
      try {
        await sleep(pause, undefined, { signal });
        await this.#launch();
        terminal.line(`${name} is back after ${seconds(Date.now() - now)} (pid ${this.pid})`);
        onRestart();
      } catch (error) {
        if (signal.aborted || this.#stopping) return;
        if (!(error instanceof Problem))
          return onGivenUp(this.#problem(`${name} cannot be started again: ${String(error)}`));
        // It died, or was ended as not ready: `#ended` tells, and that is the next death.
      }
    }
  }
}
