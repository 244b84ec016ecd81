import type { Device as Shown } from '@content-platform/contract';
import type { Device } from './device-store.ts';

/** The device as it goes over the wire. */
export function shown({ id, platform, name, tokenEnd, registeredAt, lastSeenAt, stale }: Device): Shown {
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
