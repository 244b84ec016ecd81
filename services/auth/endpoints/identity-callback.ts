import { type Database, type Handler, HttpError, type Logger } from '@content-platform/chassis';
import type { identityCallback as contract } from '@content-platform/contract';
import { audit } from '../audit.ts';
import { createIdentityCodeStore } from '../identity/code-store.ts';
import { type Answer, exchange } from '../identity/exchange.ts';
import { IdentityFailure } from '../identity/failure.ts';
import type { IdentityService } from '../identity/identity.ts';
import { createIdentityLoginStore, type IdentityLogin } from '../identity/login-store.ts';
import { personOf } from '../identity/person.ts';
import { userOf } from '../identity/users.ts';
import { randomToken, sha256 } from '../sessions/opaque-token.ts';

export interface IdentityCallbackDeps {
  identity: IdentityService;
  database: Database;
  logger: Logger;
}

/**
 * The browser comes back. Until it is sure whose login this is (a state of ours, once, in time, in the same browser) an
 * error stays here; after that the client is told, with its own state.
 */
export function identityCallback(deps: IdentityCallbackDeps): Handler<typeof contract> {
  const { identity, database, logger } = deps;
  const logins = createIdentityLoginStore(database.query);

  async function takeLogin(state: string, cookies: string | undefined): Promise<IdentityLogin> {
    const login = await logins.take(sha256(state));
    if (!login) throw new HttpError(400, 'identity_login_unknown', 'No login is under way with this state.');
    if (login.expired) {
      throw new HttpError(400, 'identity_login_expired', 'The login took too long; begin again.');
    }
    if (identity.cookie.isSame(cookies, login.browserHash)) return login;
    throw new HttpError(
      403,
      'identity_other_browser',
      'The login was begun in another browser; begin again.',
    );
  }

  /** The one-time code that stands for the person. Rejects with IdentityFailure when there is none to be had. */
  async function codeFor(answer: Answer, login: IdentityLogin): Promise<string> {
    const configuration = await identity.provider.configuration();
    const { idToken, claims } = await exchange(configuration, identity.redirectUri, answer, login);
    const person = personOf(claims, identity.suborgsClaim);
    const { issuer, suborgs } = person;
    const code = randomToken();
    await database.transaction(async (query) => {
      const { id: userId } = await userOf(query, person, identity.linkByEmail);
      const { codeChallenge } = login;
      await createIdentityCodeStore(query).add(sha256(code), {
        userId,
        codeChallenge,
        issuer,
        idToken,
        suborgs,
      });
    });
    return code;
  }

  async function note({ code, message, userId }: IdentityFailure, address: string): Promise<void> {
    logger.warn({ code, reason: message, user_id: userId }, 'a login at the identity service failed');
    const details = { reason: code, identity: identity.name };
    await audit(database.query, { event: 'login_failed', userId, address, details });
  }

  return async ({ query, header, address }) => {
    const { state, code, iss, error } = query;
    const login = await takeLogin(state, header('cookie'));
    const back = new URL(login.returnTo);
    back.searchParams.set('state', login.clientState);
    try {
      back.searchParams.set('code', await codeFor({ state, code, iss, error }, login));
    } catch (failure) {
      if (!(failure instanceof IdentityFailure)) throw failure;
      await note(failure, address);
      back.searchParams.set('error', failure.code);
    }
    return { status: 302, headers: { Location: back.href } };
  };
}
