import { page, type Handler } from '@content-platform/chassis';
import type { listSessions as contract } from '@content-platform/contract';
import type { SessionStore } from '../sessions/session-store.ts';

export function listSessions({ sessions }: { sessions: SessionStore }): Handler<typeof contract> {
  return async ({ caller, query: { limit, cursor } }) => {
    const body = await page(
      limit,
      (rows) => sessions.list(caller.id, cursor, rows),
      ({ id, device, address, createdAt, lastUsedAt }) => ({
        id,
        device,
        address,
        created_at: createdAt.toISOString(),
        last_used_at: lastUsedAt.toISOString(),
        current: String(id) === caller.sessionId,
      }),
    );
    return { status: 200, body };
  };
}
