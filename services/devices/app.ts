import * as contract from '@content-platform/contract';
import {
  createService,
  handle,
  type Logger,
  type Metrics,
  type TokenVerifier,
} from '@content-platform/chassis';
import type { DeviceStore } from './device-store.ts';
import { deleteDevice } from './endpoints/delete-device.ts';
import { deviceFeedback } from './endpoints/device-feedback.ts';
import { listDeviceTokens } from './endpoints/list-device-tokens.ts';
import { listDevices } from './endpoints/list-devices.ts';
import { registerFcmToken } from './endpoints/register-fcm-token.ts';

export interface DevicesDeps {
  devices: DeviceStore;
  tokens: TokenVerifier;
  logger: Logger;
  metrics: Metrics;
}

export function createDevices({ devices, tokens, logger, metrics }: DevicesDeps) {
  return createService({ name: 'devices', logger, metrics, tokens }, [
    handle(contract.registerFcmToken, registerFcmToken({ devices })),
    handle(contract.listDevices, listDevices({ devices })),
    handle(contract.deleteDevice, deleteDevice({ devices })),
    handle(contract.listDeviceTokens, listDeviceTokens({ devices })),
    handle(contract.deviceFeedback, deviceFeedback({ devices })),
  ]);
}
