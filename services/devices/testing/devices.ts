import { openTestService } from '@content-platform/chassis/testing/open-test-service.ts';
import { createDeviceStore } from '../device-store.ts';

export async function openDevices() {
  const service = await openTestService('devices');
  return { ...service, devices: createDeviceStore(service.database) };
}
