import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Stack } from '../../deploy/local/stack-file.ts';
import { stackFilePath } from '../../deploy/local/config.ts';
import { readStack } from '../../deploy/local/stack-file.ts';

export type { Stack };

const startLimitMs = 180_000;
const pauseMs = 50;

// `npm test` starts tests beside the stack. A test file that uses the stack waits here, while it is loaded, so that the
// wait is no part of a test's time limit.
if (process.env['STACK_IS_STARTING']) {
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  for (let waited = 0; !existsSync(stackFilePath()) && waited < startLimitMs; waited += pauseMs)
    Atomics.wait(sleeper, 0, 0, pauseMs);
}

/** The stack under test, as stack.json describes it now. */
export const stack = (): Stack => readStack();

/** Whether each service is ready and lacks nothing: it uses Redis and consumes events. */
export async function isWell({ services }: Stack = stack()): Promise<boolean> {
  const ready = await Promise.all(
    Object.values(services).map(async ({ internal }) => {
      const response = await fetch(`${internal}/health/ready`);
      return ((await response.json()) as { status: string }).status === 'ok';
    }),
  );
  return ready.every(Boolean);
}

/** The pid of any process of the stack, `postgres`, `redis` and `kafka` included, as it is now. */
export function pidOf(name: string): number {
  const file = join(dirname(process.env.STACK_FILE ?? ''), 'run', `${name}.json`);
  return (JSON.parse(readFileSync(file, 'utf8')) as { pid: number }).pid;
}
