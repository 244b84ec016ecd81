import { useStarted } from '../../../test/support/use-started.ts';
import * as contract from '@content-platform/contract';
import { client, createBrowser, type Person, startIdentityProvider } from '../../../test/support/identity.ts';
import { type EvilProvider, useEvilProvider } from './evil-provider.ts';
import { issuer as publicUrl, noIdentity, startAuth } from './start-auth.ts';
import type { IdentitySettings } from '../identity/settings.ts';
import { randomToken, sha256 } from '../sessions/opaque-token.ts';

export const returnTo = 'https://app.test/signed-in';
const callbackPath = '/api/identity/login/callback';
const params = { identity: 'identity' };

export const person = (subject: string, more: Partial<Person> = {}): Person => ({
  subject,
  name: `The ${subject}`,
  email: `${subject}@example.com`,
  emailVerified: true,
  suborgs: [],
  ...more,
});

type Options = Partial<IdentitySettings> & { people?: readonly Person[]; issuer?: string };

/** Starts auth with a real identity provider, or with the one at `issuer`. */
export async function startIdentityService({ people = [], ...settings }: Options) {
  const own = settings.issuer ? undefined : await startIdentityProvider(publicUrl + callbackPath, people);
  const issuer = own?.issuer ?? settings.issuer!;
  const auth = await startAuth({
    identity: {
      ...noIdentity,
      provider: { issuer, clientId: client.id, clientSecret: client.secret },
      returnTo: [returnTo],
      ...settings,
    },
  });

  async function begin(browser = createBrowser()) {
    const verifier = randomToken();
    const query = new URLSearchParams({
      return_to: returnTo,
      state: 'of the client',
      code_challenge: sha256(verifier).toString('base64url'),
    });
    const response = await browser.go(`${auth.origin}/api/identity/login?${query}`);
    const there = new URL(response.headers.get('location') ?? 'none:', auth.origin);
    return { browser, verifier, there };
  }

  /** Returns to the client or to an error page. `back` has the parameters of the redirect. */
  async function finish(back: URL, browser: ReturnType<typeof createBrowser>) {
    const headers = { cookie: [...browser.cookies].map((pair) => pair.join('=')).join('; ') };
    const query = Object.fromEntries(back.searchParams);
    const answer = await auth.ask(contract.identityCallback, { params, query, headers });
    const location = answer.headers.get('location');
    const { searchParams: told } = new URL(location ?? 'none:');
    return {
      status: answer.status,
      envelope: answer.error?.error,
      location,
      code: told.get('code') ?? undefined,
      error: told.get('error') ?? undefined,
    };
  }

  const redeem = (code: string, verifier: string) =>
    auth.ask(contract.token, {
      body: { grant_type: 'urn:content-platform:identity-code', code, code_verifier: verifier },
    });

  /** Returns the result of a login there as `subject`: a code, or an error. */
  async function logIn(subject: string) {
    const { browser, verifier, there } = await begin();
    return { verifier, ...(await finish(await browser.logInThere(there, subject), browser)) };
  }

  /** Returns the result of a login at a scripted provider, whose ID token gets these claims. */
  async function logInAt(evil: EvilProvider, claims: Record<string, unknown> = {}) {
    const { browser, verifier, there } = await begin();
    Object.assign(evil.claims, claims, { nonce: there.searchParams.get('nonce') });
    const back = new URL(`?code=x&state=${there.searchParams.get('state')}`, evil.issuer);
    return { verifier, ...(await finish(back, browser)) };
  }

  async function tokensOf(subject: string) {
    const { code, verifier, error } = await logIn(subject);
    if (!code) throw new Error(`the login as ${subject} failed: ${error}`);
    const { body } = await redeem(code, verifier);
    return body!;
  }

  return {
    auth,
    issuer,
    begin,
    finish,
    redeem,
    logIn,
    logInAt,
    tokensOf,
    me: async (token: string) => (await auth.ask(contract.me, { token })).body,
    /** Events of the audit log, the newest first. */
    events: () =>
      auth.sql<{ event: string; user_id: string | null; details: Record<string, unknown> }>(
        'SELECT event, user_id, details FROM auth.audit ORDER BY id DESC',
      ),
    async stop() {
      await auth.stop();
      own?.close();
    },
  };
}
export type IdentityFixture = Awaited<ReturnType<typeof startIdentityService>>;

/** Starts the service before the tests of a file or block, and stops it afterwards. */
export function useIdentityService(options: Options | (() => Options)): IdentityFixture {
  return useStarted(() => startIdentityService(typeof options === 'function' ? options() : options));
}

/** Does the same with a scripted provider. */
export function useScriptedProvider(options: Options = {}) {
  const evil = useEvilProvider();
  return { evil, scene: useIdentityService(() => ({ ...options, issuer: evil.issuer })) };
}
