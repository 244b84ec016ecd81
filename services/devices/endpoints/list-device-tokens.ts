import { page, type Handler } from '@content-platform/chassis';
import type { listDeviceTokens as contract } from '@content-platform/contract';
import type { DeviceStore } from '../device-store.ts';

export function listDeviceTokens({ devices }: { devices: DeviceStore }): Handler<typeof contract> {
  return async ({ params, query: { limit, cursor } }) => {
    const body = await page(
      limit,
      (rows) => devices.listTokens(params.id, cursor, rows),
      ({ token, platform, last_seen_at }) => ({ token, platform, last_seen_at }),
    );
    return { status: 200, body };
  };
}
