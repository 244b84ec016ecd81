import type { Device as Shown } from '@content-platform/contract';
import type { Device } from './device-store.ts';

/** The device as it goes over the wire. */
export function shown({ tokenEnd, registeredAt, lastSeenAt, ...rest }: Device): Shown {
  return {
    ...rest,
    token_end: tokenEnd,
    registered_at: registeredAt.toISOString(),
    last_seen_at: lastSeenAt.toISOString(),
  };
}
