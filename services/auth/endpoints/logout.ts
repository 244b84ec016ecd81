import type { Database, Handler } from '@content-platform/chassis';
import type { logout as contract } from '@content-platform/contract';
import { audit } from '../audit.ts';
import { createSessionStore } from '../sessions/session-store.ts';

export function logout({ database }: { database: Database }): Handler<typeof contract> {
  return async ({ caller, address }) => {
    await database.transaction(async (query) => {
      await audit(query, { event: 'logout', userId: caller.id, actor: `user:${caller.id}`, address });
      await createSessionStore(query).endOne(caller.id, Number(caller.sessionId));
    });
    return { status: 204 };
  };
}
