import type { Handler } from '@content-platform/chassis';
import type { registerFcmToken as contract } from '@content-platform/contract';
import type { DeviceStore } from '../device-store.ts';

export function registerFcmToken({ devices }: { devices: DeviceStore }): Handler<typeof contract> {
  return async ({ caller, body }) => {
    const device = await devices.register(caller.id, Number(caller.sessionId), body);
    return { status: 200, body: { success: true, device } };
  };
}
