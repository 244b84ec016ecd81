import { timingSafeEqual } from 'node:crypto';
import { HttpError } from '@content-platform/chassis';
import type { AuthContext } from '../context.ts';
import { deviceName } from '../sessions/device-name.ts';
import type { FoundCode } from '../identity/stores.ts';
import { beginMfaLogin } from '../mfa/second-factor.ts';
import { isToken, sha256 } from '../sessions/opaque-token.ts';
import { scopesOf } from '../access-tokens.ts';
import { invalidGrant } from '../sessions/sessions.ts';
import type { Stores } from '../stores.ts';
import type { User } from '../user-store.ts';
import { type Grant, required } from './grant.ts';

/** Checks the verifier against the challenge (RFC 7636 §4.6, S256). */
function verifies(codeVerifier: string, { codeChallenge }: FoundCode): boolean {
  return timingSafeEqual(sha256(codeVerifier), Buffer.from(codeChallenge, 'base64url'));
}

/** Removes a suborg that the identity provider has withdrawn since the user chose it. */
async function dropSuborg({ users, audit }: Stores, user: User): Promise<void> {
  user.suborg = null;
  await users.setSuborg(user.id, null);
  await audit.add({ event: 'suborg_changed', userId: user.id, details: { suborg: null } });
}

/** Exchanges the code of a login at the identity provider. A wrong verifier uses up the code. */
export function identityCode({ database, sessions }: AuthContext): Grant {
  /** Returns the grant, the reason of a refusal, or `mfa_required`: a throw would roll back what these two write. */
  async function redeem(stores: Stores, hash: Buffer, verifier: string, device: string, address: string) {
    const { users, identityCodes: codes, audit } = stores;
    const code = await codes.findAndLock(hash);
    // Not recorded: strangers could fill the audit log with unknown codes.
    if (!code) return 'unknown';
    const { userId, idToken, issuer, suborgs, state, sessionId } = code;
    // A code fails only a few times before it is used up or deleted, which limits the number of entries.
    const recordFailure = (reason: string) =>
      audit.add({ event: 'login_failed', userId, address, details: { reason, identity: issuer } });
    if (state === 'reused') {
      // Forgets the session, so that a third use changes and records nothing.
      await codes.markUsed(hash);
      if (sessionId === null) return state;
      // RFC 6749 §4.1.2: a code that is presented twice was stolen.
      if (await stores.sessions.endOne(userId, sessionId)) {
        const details = { session: sessionId, reason: 'its code was reused' };
        await audit.add({ event: 'session_revoked', userId, address, details });
      } else await recordFailure('the code was reused');
      return state;
    }
    if (state === 'expired') {
      await codes.delete(hash);
      await recordFailure('the code has expired');
      return state;
    }
    if (!verifies(verifier, code)) {
      await codes.markUsed(hash);
      await recordFailure('wrong code verifier');
      return 'unknown';
    }
    const user = await users.lock(userId);
    // The user may have been disabled since the callback.
    if (!user || user.disabled) {
      await codes.delete(hash);
      await recordFailure('disabled');
      return 'revoked';
    }
    if (user.suborg !== null && !suborgs.includes(user.suborg)) await dropSuborg(stores, user);
    const origin = { issuer, idToken, suborgs };
    if (user.hasMfa && !code.mfa) {
      await codes.markUsed(hash);
      return beginMfaLogin(stores, { userId, first: { origin } }, address);
    }
    const opened = await sessions.open(stores, user, { device, address, mustChangePassword: false, origin });
    await codes.markUsed(hash, opened.sessionId);
    return { ...opened, scopes: scopesOf(user.roles) };
  }

  return async ({ body, header, address }) => {
    const code = required(body, 'code');
    const verifier = required(body, 'code_verifier');
    if (!isToken(code)) throw invalidGrant('unknown');
    const device = deviceName(header('user-agent'));
    const outcome = await database.transaction((stores) =>
      redeem(stores, sha256(code), verifier, device, address),
    );
    if (typeof outcome === 'string') throw invalidGrant(outcome);
    if (outcome instanceof HttpError) throw outcome;
    return outcome;
  };
}
