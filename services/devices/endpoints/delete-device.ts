import { type Handler, HttpError } from '@content-platform/chassis';
import type { deleteDevice as contract } from '@content-platform/contract';
import type { DeviceStore } from '../device-store.ts';

export function deleteDevice({ devices }: { devices: DeviceStore }): Handler<typeof contract> {
  return async ({ caller, params: { id } }) => {
    // Another user's device gets the same reply as a device that does not exist.
    if (!(await devices.delete(caller.id, id))) throw new HttpError('not_found', `You have no device ${id}.`);
    return { status: 204 };
  };
}
