import type { Device as DeviceReply } from '@content-platform/contract';
import type { Device } from './device-store.ts';

/** Converts a device to its form in replies. */
export function toDeviceReply({
  id,
  platform,
  name,
  tokenEnd,
  registeredAt,
  lastSeenAt,
  stale,
}: Device): DeviceReply {
  return {
    id,
    platform,
    name,
    token_end: tokenEnd,
    registered_at: registeredAt.toISOString(),
    last_seen_at: lastSeenAt.toISOString(),
    stale,
  };
}
