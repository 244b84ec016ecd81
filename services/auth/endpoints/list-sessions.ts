import type { Handler } from '@content-platform/chassis';
import type { listSessions as contract } from '@content-platform/contract';
import type { SessionStore } from '../sessions/session-store.ts';

export function listSessions({ sessions }: { sessions: SessionStore }): Handler<typeof contract> {
  return async ({ caller, query: { limit, cursor } }) => {
    const found = await sessions.list(caller.id, cursor, limit + 1);
    const items = found.slice(0, limit);
    return {
      status: 200,
      body: {
        items: items.map(({ id, device, address, createdAt, lastUsedAt }) => ({
          id,
          device,
          address,
          created_at: createdAt.toISOString(),
          last_used_at: lastUsedAt.toISOString(),
          current: String(id) === caller.sessionId,
        })),
        next_cursor: found.length > limit ? String(items.at(-1)!.id) : null,
      },
    };
  };
}
