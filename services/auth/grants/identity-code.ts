import { timingSafeEqual } from 'node:crypto';
import { type Database, HttpError } from '@content-platform/chassis';
import { audit } from '../audit.ts';
import { deviceName } from '../sessions/device-name.ts';
import { createIdentityCodeStore, type PresentedCode } from '../identity/code-store.ts';
import { isToken, sha256 } from '../sessions/opaque-token.ts';
import { scopesOf } from '../rights.ts';
import { createSessionStore } from '../sessions/session-store.ts';
import { invalidGrant, type Sessions } from '../sessions/sessions.ts';
import { createUserStore, type User } from '../user-store.ts';
import type { Grant } from './grant.ts';

export interface IdentityCodeDeps {
  database: Database;
  sessions: Sessions;
}

type Query = Database['query'];

function required(body: Record<string, string | undefined>, name: string): string {
  if (body[name] !== undefined) return body[name];
  throw new HttpError(400, 'invalid_request', 'The request is not valid.', [
    { path: `body.${name}`, message: 'Is missing.' },
  ]);
}

/** RFC 7636 §4.6, S256. */
function verifies(codeVerifier: string, { codeChallenge }: PresentedCode): boolean {
  return timingSafeEqual(sha256(codeVerifier), Buffer.from(codeChallenge, 'base64url'));
}

/** Each code fails a few times at most before it is spent or gone: so there are no more rows than logins. */
async function noteFailure({ userId, issuer }: PresentedCode, reason: string, query: Query, address: string) {
  await audit(query, { event: 'login_failed', userId, address, details: { reason, identity: issuer } });
}

/** RFC 6749 §4.1.2: a code that comes again was stolen, now or the first time. */
async function endSessionOf(code: PresentedCode, query: Query, address: string): Promise<void> {
  const { userId, sessionId } = code;
  if (sessionId === undefined) return;
  if (await createSessionStore(query).endOne(userId, sessionId)) {
    const details = { session: sessionId, reason: 'its code came again' };
    await audit(query, { event: 'session_revoked', userId, address, details });
  } else await noteFailure(code, 'the code came again', query, address);
}

/** The identity service has taken it away since it was chosen. */
async function dropSuborg(user: User, query: Query): Promise<void> {
  user.suborg = null;
  await createUserStore(query).setSuborg(user.id, null);
  await audit(query, { event: 'suborg_changed', userId: user.id, details: { suborg: null } });
}

/**
 * Changes the one-time code of a login at the identity service into tokens, for the client that began it: it alone has
 * the verifier. A wrong verifier spends the code, so that nobody tries two.
 */
export function identityCode({ database, sessions }: IdentityCodeDeps): Grant {
  /** What was granted, or why nothing was: a refusal must not undo what it writes. */
  async function redeem(query: Query, hash: Buffer, verifier: string, device: string, address: string) {
    const codes = createIdentityCodeStore(query);
    const code = await codes.present(hash);
    // Nobody's: a stranger could fill the audit log with those.
    if (!code) return 'unknown';
    const { userId, idToken, issuer, suborgs, state } = code;
    async function discard(reason: string): Promise<void> {
      await codes.delete(hash);
      await noteFailure(code!, reason, query, address);
    }
    if (state === 'reused') {
      await endSessionOf(code, query, address);
      await codes.use(hash);
    }
    if (state === 'expired') await discard('the code has expired');
    if (state !== 'valid') return state;
    if (!verifies(verifier, code)) {
      await codes.use(hash);
      await noteFailure(code, 'wrong code verifier', query, address);
      return 'unknown';
    }
    const user = await createUserStore(query).lock(userId);
    // Since the browser came back.
    if (!user || user.disabled) {
      await discard('disabled');
      return 'revoked';
    }
    if (user.suborg !== null && !suborgs.includes(user.suborg)) await dropSuborg(user, query);
    const origin = { issuer, idToken, suborgs };
    const opened = await sessions.open(query, user, { device, address, mustChangePassword: false, origin });
    await codes.use(hash, opened.sessionId);
    const details = { session: opened.sessionId, device, identity: issuer };
    await audit(query, { event: 'login', userId, actor: `user:${userId}`, address, details });
    return { ...opened, scopes: scopesOf(user.roles) };
  }

  return async ({ body, header, address }) => {
    const code = required(body, 'code');
    const verifier = required(body, 'code_verifier');
    if (!isToken(code)) throw invalidGrant('unknown');
    const device = deviceName(header('user-agent'));
    const outcome = await database.transaction((query) =>
      redeem(query, sha256(code), verifier, device, address),
    );
    if (typeof outcome === 'string') throw invalidGrant(outcome);
    return outcome;
  };
}
