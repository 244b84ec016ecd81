import * as contract from '@content-platform/contract';
import { createService, handle, type ServiceOptions } from '@content-platform/chassis';
import type { DeviceStore } from './device-store.ts';
import { deleteDevice } from './endpoints/delete-device.ts';
import { deviceFeedback } from './endpoints/device-feedback.ts';
import { listDeviceTokens } from './endpoints/list-device-tokens.ts';
import { listDevices } from './endpoints/list-devices.ts';
import { registerFcmToken } from './endpoints/register-fcm-token.ts';

interface DevicesDeps extends Omit<ServiceOptions, 'name'> {
  devices: DeviceStore;
}

export function createDevices({ devices, ...options }: DevicesDeps) {
  return createService({ name: 'devices', ...options }, [
    handle(contract.registerFcmToken, registerFcmToken({ devices })),
    handle(contract.listDevices, listDevices({ devices })),
    handle(contract.deleteDevice, deleteDevice({ devices })),
    handle(contract.listDeviceTokens, listDeviceTokens({ devices })),
    handle(contract.deviceFeedback, deviceFeedback({ devices })),
  ]);
}
