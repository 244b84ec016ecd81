import { Secret, TOTP } from 'otpauth';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { accepted } from './accounts.ts';
import { until } from './wait.ts';

/** Returns the code that an authenticator app shows, `seconds` from now. */
export function codeOf(secret: string, seconds = 0): string {
  const totp = new TOTP({ secret: Secret.fromBase32(secret), algorithm: 'SHA1', digits: 6, period: 30 });
  return totp.generate({ timestamp: Date.now() + seconds * 1_000 });
}

/** Sets up a second factor with the code of the previous time step, so that the current one is left for a login. */
export async function enrol(at: string, token: string) {
  const begun = await call(at, contract.beginTotp, { token });
  const { secret } = begun.body!;
  // Once the next time step begins, the code is too old.
  const { body } = await until('a code is accepted', () => {
    const code = codeOf(secret, -30);
    return accepted(call(at, contract.confirmTotp, { token, body: { code } }));
  });
  return { secret, recoveryCodes: body.recovery_codes };
}

/** Returns the mfa_token of a reply; throws if it asks for no second factor. */
export function mfaTokenOf({ error }: { error?: contract.ErrorEnvelope | undefined }): string {
  if (error?.error !== 'mfa_required') throw new Error(`expected mfa_required, got ${error?.error}`);
  return error.details!.find(({ path }) => path === 'mfa_token')!.message;
}
