import { type Handler, HttpError } from '@content-platform/chassis';
import type { identityCallback as contract } from '@content-platform/contract';
import { type CallbackResponse, exchangeCode } from '../identity/exchange.ts';
import { IdentityFailure } from '../identity/failure.ts';
import type { IdentityLogin } from '../identity/login-store.ts';
import { toPerson } from '../identity/person.ts';
import { findOrCreateUser } from '../identity/users.ts';
import { randomToken, sha256 } from '../sessions/opaque-token.ts';
import type { AuthContext } from '../context.ts';

/**
 * Handles the browser's return from the identity provider. A login is identified by its state, which is valid once, for
 * a limited time and in the same browser. Errors in these checks are shown as a page. Later errors are passed to the
 * client with its own state.
 */
export function identityCallback({ identity, database, logger }: AuthContext): Handler<typeof contract> {
  async function consumeLogin(state: string, cookies: string | undefined): Promise<IdentityLogin> {
    const login = await database.identityLogins.consume(sha256(state));
    if (!login) throw new HttpError('identity_login_unknown', 'No login with this state is in progress.');
    if (login.expired) {
      throw new HttpError('identity_login_expired', 'The login took too long. Start it again.');
    }
    if (identity.cookie.matches(cookies, login.browserHash)) return login;
    throw new HttpError(
      'identity_other_browser',
      'The login was started in another browser. Start it again.',
    );
  }

  /** Returns a one-time code for the user who logged in. Rejects with IdentityFailure. */
  async function codeFor(answer: CallbackResponse, login: IdentityLogin): Promise<string> {
    const configuration = await identity.provider.configuration();
    const { idToken, claims } = await exchangeCode(configuration, identity.redirectUri, answer, login);
    const person = toPerson(claims, identity.suborgsClaim);
    const { issuer, suborgs, mfa } = person;
    const { codeChallenge } = login;
    const code = randomToken();
    await database.transaction(async (stores) => {
      const { id: userId } = await findOrCreateUser(stores, person, identity);
      const content = { userId, codeChallenge, issuer, idToken, suborgs, mfa };
      await stores.identityCodes.add(sha256(code), content);
    });
    return code;
  }

  async function recordFailure({ code, message, userId }: IdentityFailure, address: string): Promise<void> {
    logger.warn({ code, reason: message, user_id: userId }, 'a login at the identity service failed');
    const details = { reason: code, identity: identity.name };
    await database.audit.add({ event: 'login_failed', userId, address, details });
  }

  return async ({ query, header, address }) => {
    const { state, code, iss, error } = query;
    const login = await consumeLogin(state, header('cookie'));
    const back = new URL(login.returnTo);
    back.searchParams.set('state', login.clientState);
    try {
      back.searchParams.set('code', await codeFor({ state, code, iss, error }, login));
    } catch (failure) {
      if (!(failure instanceof IdentityFailure)) throw failure;
      await recordFailure(failure, address);
      back.searchParams.set('error', failure.code);
    }
    return { status: 302, headers: { Location: back.href } };
  };
}
