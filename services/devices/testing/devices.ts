import { migrate } from '@content-platform/chassis';
import { openTestService } from '@content-platform/chassis/testing/open-test-service.ts';
import { createDeviceStore } from '../device-store.ts';

const folder = new URL('../migrations/', import.meta.url);
export async function openDevices() {
  const service = await openTestService('devices', (url, logger) =>
    migrate({ url, schema: 'devices', folder, logger }),
  );
  const { database } = service;
  return {
    ...service,
    devices: createDeviceStore(database),
    sql: <Row extends object>(text: string, values: unknown[] = []) =>
      database.query<Row & Record<string, unknown>>('test', text, values).then(({ rows }) => rows),
  };
}
