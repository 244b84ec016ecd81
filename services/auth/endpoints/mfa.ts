import { HttpError, type Handler } from '@content-platform/chassis';
import type * as contract from '@content-platform/contract';
import { removeMfa } from '../administration.ts';
import { byUser } from '../audit-store.ts';
import type { AuthContext } from '../context.ts';
import { decrypt, encrypt } from '../keys/sealing.ts';
import {
  acceptProof,
  encodeTotpSecret,
  findTimeStep,
  invalidCode,
  newTotpSecret,
  throttleProof,
  totpContext,
} from '../mfa/second-factor.ts';
import { makeRandomCode } from '../passwords/temporary-password.ts';
import { findCaller } from '../sessions/caller.ts';
import { sha256 } from '../sessions/opaque-token.ts';

const recoveryCodeCount = 10;

/** Creates a secret. Logins need a code only after the user has confirmed it. */
export function beginTotp({ database, totpKey }: AuthContext): Handler<typeof contract.beginTotp> {
  return async ({ caller }) => {
    const user = await findCaller(database.users, caller);
    const secret = newTotpSecret();
    if (!(await database.mfa.beginTotp(user.id, encrypt(secret, totpKey, totpContext(user.id))))) {
      throw new HttpError('mfa_enabled', 'A second factor is set up already. Remove it first.');
    }
    return { status: 201, body: encodeTotpSecret(secret, user.email) };
  };
}

/** Turns the second factor on after a correct code has shown that the user's app has the secret. */
export function confirmTotp(context: AuthContext): Handler<typeof contract.confirmTotp> {
  const { database, totpKey } = context;
  return async ({ caller: { id }, body: { code }, address }) => {
    const { codes } = await throttleProof(context, id, address, () =>
      database.transaction(async ({ mfa, audit }) => {
        const totp = await mfa.lockTotp(id);
        if (totp?.confirmed) throw new HttpError('mfa_enabled', 'The second factor is set up already.');
        const step = totp && findTimeStep(decrypt(totp.encrypted, totpKey, totpContext(id)), code);
        if (step === undefined) return { ok: false, codes: [] };
        await mfa.recordAcceptedStep(id, step);
        const newCodes = Array.from({ length: recoveryCodeCount }, makeRandomCode);
        await mfa.addRecoveryCodes(id, newCodes.map(sha256));
        await audit.add({ ...byUser(id, address), event: 'mfa_enabled' });
        return { ok: true, codes: newCodes };
      }),
    );
    if (codes.length === 0) throw invalidCode();
    return { status: 200, body: { recovery_codes: codes } };
  };
}

/** Turns the second factor off. It needs the factor itself, because a stolen session must not be enough. */
export function deleteTotp(context: AuthContext): Handler<typeof contract.deleteTotp> {
  const { database, totpKey } = context;
  return async ({ caller: { id }, body, address }) => {
    const user = await database.users.findById(id);
    if (!user?.hasMfa) throw new HttpError('not_found', 'No second factor is set up.');
    const { ok } = await throttleProof(context, id, address, () =>
      database.transaction(async (stores) => {
        if (!(await acceptProof(stores, totpKey, id, body))) return { ok: false };
        await removeMfa(stores, id, byUser(id, address));
        return { ok: true };
      }),
    );
    if (!ok) throw invalidCode();
    return { status: 204 };
  };
}
