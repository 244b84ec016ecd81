import * as contract from '@content-platform/contract';
import { createService, handle, type ServiceOptions } from '@content-platform/chassis';
import {
  deleteDevice,
  type DeviceDeps,
  deviceFeedback,
  listDevices,
  listDeviceTokens,
  registerFcmToken,
} from './endpoints/devices.ts';

export function createDevices(deps: Omit<ServiceOptions, 'name'> & DeviceDeps) {
  return createService({ ...deps, name: 'devices' }, [
    handle(contract.registerFcmToken, registerFcmToken(deps)),
    handle(contract.listDevices, listDevices(deps)),
    handle(contract.deleteDevice, deleteDevice(deps)),
    handle(contract.listDeviceTokens, listDeviceTokens(deps)),
    handle(contract.deviceFeedback, deviceFeedback(deps)),
  ]);
}
