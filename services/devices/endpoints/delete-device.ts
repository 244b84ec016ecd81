import { type Handler, HttpError } from '@content-platform/chassis';
import type { deleteDevice as contract } from '@content-platform/contract';
import type { DeviceStore } from '../device-store.ts';

export function deleteDevice({ devices }: { devices: DeviceStore }): Handler<typeof contract> {
  return async ({ caller, params: { id } }) => {
    // Another's is no other answer than none.
    if (!(await devices.delete(caller.id, id)))
      throw new HttpError(404, 'not_found', `You have no device ${id}.`);
    return { status: 204 };
  };
}
