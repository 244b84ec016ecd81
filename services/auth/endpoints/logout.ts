import type { Handler } from '@content-platform/chassis';
import type { logout as contract } from '@content-platform/contract';
import { byUser } from '../audit-store.ts';
import type { AuthContext } from '../context.ts';

export function logout({ database, pushDevices }: AuthContext): Handler<typeof contract> {
  return async ({ caller: { id, sessionId }, body, address }) => {
    const session = Number(sessionId);
    await database.transaction(async ({ sessions, audit }) => {
      await audit.add({ ...byUser(id, address), event: 'logout', details: { session } });
      await sessions.endOne(id, session);
    });
    // Last, so that the session ends even if the devices service is unavailable.
    if (body?.fcm_token) await pushDevices.unregister(id, body.fcm_token);
    return { status: 204 };
  };
}
