import type { Handler } from '@content-platform/chassis';
import type { deleteSessions as contract } from '@content-platform/contract';
import { byUser } from '../audit-store.ts';
import type { AuthContext } from '../context.ts';

export function deleteSessions({ database }: AuthContext): Handler<typeof contract> {
  return async ({ caller: { id }, address }) => {
    await database.transaction(async ({ sessions, audit }) => {
      const details = { session: 'all' };
      await audit.add({ ...byUser(id, address), event: 'session_revoked', details });
      await sessions.endAll(id);
    });
    return { status: 204 };
  };
}
