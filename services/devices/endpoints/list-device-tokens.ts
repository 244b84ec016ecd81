import { page, type Handler } from '@content-platform/chassis';
import type { listDeviceTokens as contract } from '@content-platform/contract';
import type { DeviceStore } from '../device-store.ts';

export function listDeviceTokens({ devices }: { devices: DeviceStore }): Handler<typeof contract> {
  return async ({ params: { id }, query: { limit, cursor } }) => {
    const body = await page(
      limit,
      (rows) => devices.listTokens(id, cursor, rows),
      ({ token, platform, lastSeenAt }) => ({ token, platform, last_seen_at: lastSeenAt.toISOString() }),
    );
    return { status: 200, body };
  };
}
