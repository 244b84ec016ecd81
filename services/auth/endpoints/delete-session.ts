import { type Handler, HttpError } from '@content-platform/chassis';
import type { deleteSession as contract } from '@content-platform/contract';
import { byUser } from '../audit-store.ts';
import type { AuthContext } from '../context.ts';

export function deleteSession({ database }: AuthContext): Handler<typeof contract> {
  return async ({ caller, params: { id }, address }) => {
    await database.transaction(async ({ sessions, audit }) => {
      const ended = await sessions.endOne(caller.id, id);
      // The same reply as if another user's session did not exist.
      if (!ended) throw new HttpError('not_found', `You have no session ${id}.`);
      const details = { session: id };
      await audit.add({ ...byUser(caller.id, address), event: 'session_revoked', details });
    });
    return { status: 204 };
  };
}
