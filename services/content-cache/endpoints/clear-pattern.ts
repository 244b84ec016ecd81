import type { Handler } from '@content-platform/chassis';
import { models, type clearPattern as contract } from '@content-platform/contract';
import type { ClearForCaller } from '../clear-for-caller.ts';

export function clearPattern({ clear }: { clear: ClearForCaller }): Handler<typeof contract> {
  return async ({ body: { pattern }, caller }) => {
    // The contract allows only a model followed by `:*`.
    const model = models.find((name) => pattern === `${name}:*`)!;
    return { status: 200, body: { success: true, keys_deleted: await clear(model, null, caller) } };
  };
}
