import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { freeRow } from '../../../test/support/ports.ts';
import { bareEnvironment } from '../../../test/support/processes.ts';

const main = new URL('auth.ts', import.meta.url).pathname;

/** Starts the service of ./auth.ts in a process, with these settings, modules to preload and arguments. */
export async function startServiceProcess(
  env: NodeJS.ProcessEnv = {},
  { preloads = [], args = [] }: { preloads?: string[]; args?: string[] } = {},
) {
  const port = await freeRow(1);
  const flags = preloads.map((file) => `--import=${new URL(`../${file}`, import.meta.url).href}`);
  const child = spawn(process.execPath, [...flags, main, ...args], {
    env: { ...bareEnvironment, PORT: String(port), ...env },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
  const url = `http://127.0.0.1:${port}/.well-known/jwks.json`;
  const internal = `http://127.0.0.1:${port + 1000}`;
  return {
    child,
    port,
    internal,
    /** Resolves with the exit code. */
    ended: once(child, 'close').then(([code]) => code as number),
    output: () => output,
    isReady: async () => (await fetch(`${internal}/health/ready`)).ok,
    ask: async (headers: Record<string, string> = {}) => (await fetch(url, { headers })).status,
  };
}
