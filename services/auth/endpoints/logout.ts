import type { Database, Handler } from '@content-platform/chassis';
import type { logout as contract } from '@content-platform/contract';
import { audit } from '../audit.ts';
import type { PushDevices } from '../sessions/push-devices.ts';
import { createSessionStore } from '../sessions/session-store.ts';

export interface LogoutDeps {
  database: Database;
  pushDevices: PushDevices;
}

export function logout({ database, pushDevices }: LogoutDeps): Handler<typeof contract> {
  return async ({ caller: { id: userId, sessionId }, body, address }) => {
    const session = Number(sessionId);
    await database.transaction(async (query) => {
      const details = { session };
      await audit(query, { event: 'logout', userId, actor: `user:${userId}`, address, details });
      await createSessionStore(query).endOne(userId, session);
    });
    // Afterwards: a session must end also when the devices cannot be reached.
    if (body?.fcm_token) await pushDevices.unregister(userId, body.fcm_token);
    return { status: 204 };
  };
}
