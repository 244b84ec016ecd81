import type { Database, Handler } from '@content-platform/chassis';
import type { logout as contract } from '@content-platform/contract';
import { audit } from '../audit.ts';
import { createSessionStore } from '../sessions/session-store.ts';

export function logout({ database }: { database: Database }): Handler<typeof contract> {
  return async ({ caller: { id: userId, sessionId }, address }) => {
    const session = Number(sessionId);
    await database.transaction(async (query) => {
      const details = { session };
      await audit(query, { event: 'logout', userId, actor: `user:${userId}`, address, details });
      await createSessionStore(query).endOne(userId, session);
    });
    return { status: 204 };
  };
}
