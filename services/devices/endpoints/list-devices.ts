import type { Handler } from '@content-platform/chassis';
import type { listDevices as contract } from '@content-platform/contract';
import type { DeviceStore } from '../device-store.ts';
import { shown } from '../device.ts';

export function listDevices({ devices }: { devices: DeviceStore }): Handler<typeof contract> {
  return async ({ caller, query: { limit, cursor } }) => {
    const { items, next } = await devices.list(caller.id, cursor, limit);
    return {
      status: 200,
      body: { items: items.map(shown), next_cursor: next === null ? null : String(next) },
    };
  };
}
