import type { Handler } from '@content-platform/chassis';
import type { registerFcmToken as contract } from '@content-platform/contract';
import type { DeviceStore } from '../device-store.ts';
import { toDeviceReply } from '../device.ts';

export function registerFcmToken({ devices }: { devices: DeviceStore }): Handler<typeof contract> {
  return async ({ caller, body: { app_version: appVersion, ...registration } }) => {
    const device = await devices.register(caller.id, { ...registration, appVersion });
    return { status: 200, body: { success: true, device: toDeviceReply(device) } };
  };
}
