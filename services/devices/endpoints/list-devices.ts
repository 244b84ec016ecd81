import { page, type Handler } from '@content-platform/chassis';
import type { listDevices as contract } from '@content-platform/contract';
import type { DeviceStore } from '../device-store.ts';

export function listDevices({ devices }: { devices: DeviceStore }): Handler<typeof contract> {
  return async ({ caller, query: { limit, cursor } }) => {
    const read = (rows: number) => devices.list(caller.id, cursor, rows);
    return { status: 200, body: await page(limit, read) };
  };
}
