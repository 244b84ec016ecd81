import { HttpError, type Handler } from '@content-platform/chassis';
import type { deleteTotp as contract } from '@content-platform/contract';
import { byUser } from '../audit-store.ts';
import type { AuthContext } from '../context.ts';
import { acceptProof, invalidCode, throttleProof } from '../mfa/second-factor.ts';

/** Turns the second factor off. It needs the factor itself, because a stolen session must not be enough. */
export function deleteTotp(context: AuthContext): Handler<typeof contract> {
  const { database, totpKey } = context;
  return async ({ caller: { id }, body, address }) => {
    const user = await database.users.findById(id);
    if (!user?.hasMfa) throw new HttpError('not_found', 'No second factor is set up.');
    const { ok } = await throttleProof(context, id, address, () =>
      database.transaction(async (stores) => {
        if (!(await acceptProof(stores, totpKey, id, body))) return { ok: false };
        await stores.mfa.remove(id);
        await stores.audit.add({ ...byUser(id, address), event: 'mfa_disabled' });
        return { ok: true };
      }),
    );
    if (!ok) throw invalidCode();
    return { status: 204 };
  };
}
