import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { client, createBrowser, type Person, startIdentityProvider } from '../../../test/support/identity.ts';
import { issuer as publicUrl, startAuth } from './start-auth.ts';
import type { IdentitySettings } from '../identity/settings.ts';
import { randomToken, sha256 } from '../sessions/opaque-token.ts';

export const returnTo = 'https://app.test/signed-in';
const callbackPath = '/api/identity/login/callback';
const params = { identity: 'identity' };

/** A person at the identity service. */
export const person = (subject: string, more: Partial<Person> = {}): Person => ({
  subject,
  name: `The ${subject}`,
  email: `${subject}@example.com`,
  emailVerified: true,
  suborgs: [],
  ...more,
});

/** Starts the service with a real identity service, or with the given one. */
export async function startIdentityService({
  people = [],
  ...settings
}: Partial<IdentitySettings> & { people?: readonly Person[]; issuer?: string }) {
  const own = settings.issuer ? undefined : await startIdentityProvider(publicUrl + callbackPath, people);
  const issuer = own?.issuer ?? settings.issuer!;
  const auth = await startAuth({
    identity: {
      name: 'identity',
      provider: { issuer, clientId: client.id, clientSecret: client.secret },
      returnTo: [returnTo],
      linkByEmail: false,
      allowUnverified: false,
      suborgsClaim: 'suborgs',
      ...settings,
    },
  });

  /** Begins a login. The browser is then redirected to the identity service. */
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

  /**
   * Returns from the identity service, to the client or to an error page. `back` has the parameters of the redirect.
   */
  async function finish(back: URL, browser: ReturnType<typeof createBrowser>) {
    const headers = { cookie: [...browser.cookies].map((pair) => pair.join('=')).join('; ') };
    const query = Object.fromEntries(back.searchParams);
    const answer = await call(auth.origin, contract.identityCallback, { params, query, headers });
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
    call(auth.origin, contract.token, {
      body: { grant_type: 'urn:content-platform:identity-code', code, code_verifier: verifier },
    });

  /** Returns the result of a login there as `subject`: a code, or an error. */
  async function logIn(subject: string) {
    const { browser, verifier, there } = await begin();
    return { verifier, ...(await finish(await browser.logInThere(there, subject), browser)) };
  }

  /** Completes a login and returns its tokens. */
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
    tokensOf,
    me: async (token: string) => (await call(auth.origin, contract.me, { token })).body,
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
