import type { Database, Handler } from '@content-platform/chassis';
import type { deleteSessions as contract } from '@content-platform/contract';
import { audit } from '../audit.ts';
import { createSessionStore } from '../sessions/session-store.ts';

export function deleteSessions({ database }: { database: Database }): Handler<typeof contract> {
  return async ({ caller: { id: userId }, address }) => {
    await database.transaction(async (query) => {
      const details = { session: 'all' };
      await audit(query, { event: 'session_revoked', userId, actor: `user:${userId}`, address, details });
      await createSessionStore(query).endAll(userId);
    });
    return { status: 204 };
  };
}
