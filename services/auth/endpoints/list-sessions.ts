import { page, type Handler } from '@content-platform/chassis';
import type { listSessions as contract } from '@content-platform/contract';
import type { AuthContext } from '../context.ts';

export function listSessions({ database }: AuthContext): Handler<typeof contract> {
  return async ({ caller, query: { limit, cursor } }) => {
    const body = await page(
      limit,
      (rows) => database.sessions.list(caller.id, cursor, rows),
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
