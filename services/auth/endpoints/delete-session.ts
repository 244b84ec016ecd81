import { type Database, type Handler, HttpError } from '@content-platform/chassis';
import type { deleteSession as contract } from '@content-platform/contract';
import { audit } from '../audit.ts';
import { createSessionStore } from '../sessions/session-store.ts';

export function deleteSession({ database }: { database: Database }): Handler<typeof contract> {
  return async ({ caller, params: { id }, address }) => {
    const { id: userId } = caller;
    await database.transaction(async (query) => {
      const ended = await createSessionStore(query).endOne(userId, id);
      // Another's is no other answer than none.
      if (!ended) throw new HttpError(404, 'not_found', `You have no session ${id}.`);
      const details = { session: id };
      await audit(query, { event: 'session_revoked', userId, actor: `user:${userId}`, address, details });
    });
    return { status: 204 };
  };
}
