import { openTestService } from '@content-platform/chassis/testing/open-test-service.ts';
import { createDeviceStore } from '../device-store.ts';

export async function openDevices() {
  const service = await openTestService('devices');
  const { database } = service;
  return {
    ...service,
    devices: createDeviceStore(database),
    sql: <Row extends object>(text: string, values: unknown[] = []) =>
      database.query<Row & Record<string, unknown>>('test', text, values).then(({ rows }) => rows),
  };
}
