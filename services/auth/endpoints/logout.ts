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
  return async ({ caller, body, address }) => {
    await database.transaction(async (query) => {
      await audit(query, { event: 'logout', userId: caller.id, actor: `user:${caller.id}`, address });
      await createSessionStore(query).endOne(caller.id, Number(caller.sessionId));
    });
    // Afterwards: a session must end also when the devices cannot be reached.
    if (body?.fcm_token !== undefined) await pushDevices.unregister(caller.id, body.fcm_token);
    return { status: 204 };
  };
}
