import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { internalPortOffset } from '@content-platform/contract';
import { freeRow } from '../../test/support/ports.ts';
import { bareEnvironment } from '../../test/support/processes.ts';

const main = fileURLToPath(new URL('../main.ts', import.meta.url));

/** Starts the gateway as a process. Services that `env` does not name are unreachable. The caller ends the process. */
export async function startProcess(env: Record<string, string> = {}) {
  const port = await freeRow(1);
  const child = spawn(process.execPath, [main], { env: { ...bareEnvironment, PORT: String(port), ...env } });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
  return {
    child,
    origin: `http://127.0.0.1:${port}`,
    internal: `http://127.0.0.1:${port + internalPortOffset}`,
    ended: once(child, 'close').then(([code]) => code as number),
    output: () => output,
  };
}
