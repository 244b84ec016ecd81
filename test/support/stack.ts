import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Stack } from '../../deploy/local/stack-file.ts';
import { readStack } from '../../deploy/local/stack-file.ts';

export type { Stack };

/** The stack under test, as it is now: STACK_FILE names its stack.json, which is written anew when a process restarts. */
export const stack = (): Stack => readStack();

/** Every service is ready, and lacks nothing: Redis is used, events are consumed. */
export async function isWell(): Promise<boolean> {
  const ready = await Promise.all(
    Object.values(stack().services).map(async ({ internal }) => {
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
