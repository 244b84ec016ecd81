import type { Handler } from '@content-platform/chassis';
import type { listDeviceTokens as contract } from '@content-platform/contract';
import type { DeviceStore } from '../device-store.ts';

export function listDeviceTokens({ devices }: { devices: DeviceStore }): Handler<typeof contract> {
  return async ({ params: { id }, query: { limit, cursor } }) => {
    const { items, next } = await devices.listTokens(id, cursor, limit);
    return {
      status: 200,
      body: {
        items: items.map(({ token, platform, lastSeenAt }) => ({
          token,
          platform,
          last_seen_at: lastSeenAt.toISOString(),
        })),
        next_cursor: next === null ? null : String(next),
      },
    };
  };
}
