import type { Handler } from '@content-platform/chassis';
import type { clearModel as contract } from '@content-platform/contract';
import type { ClearForCaller } from '../clear-for-caller.ts';

export function clearModel({ clear }: { clear: ClearForCaller }): Handler<typeof contract> {
  return async ({ body: { model, id, ids = [id!] }, caller }) => ({
    status: 200,
    body: { success: true, keys_deleted: await clear(model, [...new Set(ids)], caller) },
  });
}
