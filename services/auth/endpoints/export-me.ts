import { type Handler, rowsOf } from '@content-platform/chassis';
import type { exportMe as contract } from '@content-platform/contract';
import { byUser } from '../audit-store.ts';
import type { AuthContext } from '../context.ts';
import { sessionEnded, toIdentity, toProfile, toSession } from '../replies.ts';
import { requireRecentLogin } from '../sessions/recent-login.ts';

export function exportMe({ database, personalData }: AuthContext): Handler<typeof contract> {
  return async ({ caller, address, signal }) => {
    const { identities, sessions, users, audit } = database;
    await requireRecentLogin(sessions, caller);
    const user = await users.findById(caller.id);
    if (!user || user.disabled) throw sessionEnded();
    const linked = await identities.list(user.id);
    const profile = {
      ...toProfile(user),
      identities: linked.map((one) => ({ ...toIdentity(one), subject: one.subject })),
    };
    const stored = await rowsOf(async (last?: { id: number }) =>
      (await sessions.list(user.id, last?.id, 500, 'all')).map((one) => ({
        ...toSession(one, caller),
        active: one.active,
      })),
    );
    await audit.add({ ...byUser(user.id, address), event: 'data_exported' });
    const body = await personalData.export(profile, stored, signal);
    return { status: 200, body, headers: { 'Content-Type': 'application/json; charset=utf-8' } };
  };
}
