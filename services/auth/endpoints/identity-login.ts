import { HttpError, invalidFields, type Handler } from '@content-platform/chassis';
import type * as contract from '@content-platform/contract';
import { buildAuthorizationUrl, calculatePKCECodeChallenge } from 'openid-client';
import type { AuthContext } from '../context.ts';
import { exchangeCode } from '../identity/exchange.ts';
import { IdentityFailure } from '../identity/failure.ts';
import type { IdentityLogin } from '../identity/stores.ts';
import { type Person, toPerson } from '../identity/person.ts';
import { findOrCreateUser } from '../identity/users.ts';
import { randomToken, sha256 } from '../sessions/opaque-token.ts';

/** Redirects the browser to the identity provider: code flow with PKCE, state and nonce (RFC 9700 §2.1.1, RFC 7636). */
export function identityLogin({ identity, database }: AuthContext): Handler<typeof contract.identityLogin> {
  return async ({ query, header }) => {
    const { return_to: returnTo, code_challenge: codeChallenge, state: clientState } = query;
    // RFC 9700 §2.1: otherwise attackers could redirect codes to themselves.
    if (!identity.returnTo.includes(returnTo)) {
      const message = 'Must be one of the URLs in IDENTITY_RETURN_TO, exactly as written there.';
      throw invalidFields([{ path: 'query.return_to', message }]);
    }
    const configuration = await identity.provider.configuration().catch((cause: unknown) => {
      const message = 'The identity provider is unreachable, or its metadata is invalid.';
      throw new HttpError('identity_unavailable', message, { cause });
    });
    const [state, nonce, codeVerifier] = [randomToken(), randomToken(), randomToken()];
    const { cookie, hash: browserHash } = identity.cookie.issue(header('cookie'));
    const login = { browserHash, nonce, codeVerifier, returnTo, clientState, codeChallenge };
    await database.identityLogins.add(sha256(state), login);
    const url = buildAuthorizationUrl(configuration, {
      redirect_uri: identity.redirectUri,
      scope: 'openid email profile',
      state,
      nonce,
      code_challenge: await calculatePKCECodeChallenge(codeVerifier),
      code_challenge_method: 'S256',
    });
    return { status: 302, headers: { Location: url.href, 'Set-Cookie': cookie } };
  };
}

/**
 * Completes a login and redirects the browser to `return_to` with a one-time code. Throws 400 or 403 for a state that
 * is unknown, expired or of another browser. A later IdentityFailure becomes the parameter `error` of the redirect.
 */
export function identityCallback(context: AuthContext): Handler<typeof contract.identityCallback> {
  const { identity, database, logger } = context;

  async function consumeLogin(state: string, cookies: string | undefined): Promise<IdentityLogin> {
    const login = await database.identityLogins.consume(sha256(state));
    if (!login) throw new HttpError('identity_login_unknown', 'Unknown login state. Start the login again.');
    if (login.expired) {
      throw new HttpError('identity_login_expired', 'The login took too long. Start it again.');
    }
    if (identity.cookie.matches(cookies, login.browserHash)) return login;
    const message = 'The login was started in another browser. Start it again.';
    throw new HttpError('identity_other_browser', message);
  }

  /** Returns a one-time code for the person who logged in. Rejects with IdentityFailure. */
  async function codeFor(person: Person, idToken: string, codeChallenge: string): Promise<string> {
    const { issuer, suborgs, mfa } = person;
    const code = randomToken();
    await database.transaction(async (stores) => {
      const { id: userId } = await findOrCreateUser(stores, person, identity);
      const content = { userId, codeChallenge, issuer, idToken, suborgs, mfa };
      await stores.identityCodes.add(sha256(code), content);
    });
    return code;
  }

  return async ({ query: response, header, address }) => {
    const login = await consumeLogin(response.state, header('cookie'));
    const back = new URL(login.returnTo);
    back.searchParams.set('state', login.clientState);
    let isIdentified = false;
    try {
      const configuration = await identity.provider.configuration();
      const { idToken, claims } = await exchangeCode(configuration, identity.redirectUri, response, login);
      isIdentified = true;
      const person = toPerson(claims, identity.suborgsClaim);
      back.searchParams.set('code', await codeFor(person, idToken, login.codeChallenge));
    } catch (failure) {
      if (!(failure instanceof IdentityFailure)) throw failure;
      const { code: reason, message, userId } = failure;
      const fields = { code: reason, reason: message, user_id: userId };
      logger.warn(fields, 'a login at the identity provider failed');
      const details = { reason, identity: identity.name };
      // Strangers can cause every earlier failure, and could fill the audit log.
      if (isIdentified) await database.audit.add({ event: 'login_failed', userId, address, details });
      back.searchParams.set('error', reason);
    }
    return { status: 302, headers: { Location: back.href } };
  };
}
