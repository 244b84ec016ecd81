import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { services } from '@content-platform/contract';
import { stackFilePath } from '../../deploy/local/config.ts';
import { readStack, type Stack } from '../../deploy/local/stack-file.ts';

const pauseMs = 50;

// `npm test` starts tests while the stack starts. A test file that uses the stack waits here during its import, so that
// the wait does not count toward a test's time limit.
if (process.env['STACK_IS_STARTING']) {
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  for (let waited = 0; !existsSync(stackFilePath()) && waited < 15 * 60_000; waited += pauseMs)
    Atomics.wait(sleeper, 0, 0, pauseMs);
}

/** Returns the stack under test, as stack.json describes it now. */
export const stack = (): Stack => readStack();

/** Returns the origin whose pages may call the API of the stack under test. Its port is free. */
export const pageOrigin = (gateway = stack().gateway): string =>
  `http://localhost:${Number(new URL(gateway).port) + services.length}`;

/** Is each service ready without a degraded dependency? It then uses Redis and consumes events. */
export async function isStackReady({ services }: Stack = stack()): Promise<boolean> {
  const ready = await Promise.all(
    Object.values(services).map(async ({ internal }) => {
      const response = await fetch(`${internal}/health/ready`);
      return ((await response.json()) as { status: string }).status === 'ok';
    }),
  );
  return ready.every(Boolean);
}

/** Returns the current pid of any process of the stack, including `postgres`, `redis` and `kafka`. */
export function pidOf(name: string): number {
  const file = join(dirname(process.env.STACK_FILE ?? ''), 'run', `${name}.json`);
  return (JSON.parse(readFileSync(file, 'utf8')) as { pid: number }).pid;
}
