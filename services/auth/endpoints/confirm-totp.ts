import { HttpError, type Handler } from '@content-platform/chassis';
import type { confirmTotp as contract } from '@content-platform/contract';
import { byUser } from '../audit-store.ts';
import type { AuthContext } from '../context.ts';
import { decrypt } from '../keys/sealing.ts';
import { invalidCode, throttleProof, totpContext, findTimeStep } from '../mfa/second-factor.ts';
import { makeRandomCode } from '../passwords/temporary-password.ts';
import { sha256 } from '../sessions/opaque-token.ts';

const recoveryCodes = 10;

/** Turns the second factor on after a correct code has shown that the user's app has the secret. */
export function confirmTotp(context: AuthContext): Handler<typeof contract> {
  const { database, totpKey } = context;
  return async ({ caller: { id }, body: { code }, address }) => {
    const { codes } = await throttleProof(context, id, address, () =>
      database.transaction(async ({ mfa, audit }) => {
        const totp = await mfa.lock(id);
        if (totp?.confirmed) throw new HttpError('mfa_enabled', 'The second factor is set up already.');
        const step = totp && findTimeStep(decrypt(totp.encrypted, totpKey, totpContext(id)), code);
        if (step === undefined) return { ok: false, codes: [] };
        await mfa.recordAcceptedStep(id, step);
        const made = Array.from({ length: recoveryCodes }, makeRandomCode);
        await mfa.addRecoveryCodes(id, made.map(sha256));
        await audit.add({ ...byUser(id, address), event: 'mfa_enabled' });
        return { ok: true, codes: made };
      }),
    );
    if (codes.length === 0) throw invalidCode();
    return { status: 200, body: { recovery_codes: codes } };
  };
}
