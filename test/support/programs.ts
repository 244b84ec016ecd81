import { afterAll } from '@jest/globals';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { internalPortOffset } from '@content-platform/contract';
import { ROOT } from '../../deploy/local/config.ts';
import { freeRow } from './ports.ts';
import { bareEnvironment } from './processes.ts';

interface ProgramOptions {
  args?: readonly string[];
  env?: NodeJS.ProcessEnv;
  flags?: readonly string[];
  input?: string;
  /** Folder of the repository or of another release. */
  root?: string;
}

const children: ChildProcess[] = [];
// A failed test does not end its processes.
afterAll(() => children.forEach((child) => child.kill('SIGKILL')));

/** Starts a program of the repository with Node. The process ends by itself, or the caller ends it. */
export function startProgram(file: string, options: ProgramOptions = {}) {
  const { args = [], env, flags = [], input = '', root = ROOT } = options;
  const child = spawn(process.execPath, [...flags, join(root, file), ...args], {
    cwd: root,
    env: { ...bareEnvironment, ...env },
  });
  children.push(child);
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].on('data', (chunk: Buffer) => (output[name] += chunk.toString()));
  child.stdin.end(input);
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, ...output }));
  return { child, output, ended };
}

/** Starts a service on a free port, without waiting until it is ready. The caller ends the process. */
export async function startService(file: string, options: ProgramOptions = {}) {
  const port = await freeRow(1);
  const env = { PORT: String(port), ...options.env };
  const internal = `http://127.0.0.1:${port + internalPortOffset}`;
  return {
    ...startProgram(file, { ...options, env }),
    port,
    origin: `http://127.0.0.1:${port}`,
    internal,
    isReady: async () => (await fetch(`${internal}/health/ready`)).ok,
  };
}
