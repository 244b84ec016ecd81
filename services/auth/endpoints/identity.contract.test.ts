import { createHash, randomBytes } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { afterAll, expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { call, type Answer } from '@content-platform/contract/client';
import { startHttpServer } from '../../../test/support/http-server.ts';
import { createBrowser } from '../../../test/support/identity.ts';
import { returnTo, startIdentityStack } from '../../../test/support/identity-stack.ts';
import { database } from '../../../test/support/records.ts';
import { until } from '../../../test/support/wait.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

const id = randomBytes(6).toString('hex');
const ida = {
  subject: `ida-${id}`,
  name: 'Ida Dent',
  email: `ida-${id}@example.com`,
  emailVerified: true,
  suborgs: ['north', 'south'],
};
const logoutTokens: string[] = [];
const receiver = await startHttpServer(async (request, response) => {
  logoutTokens.push(new URLSearchParams(await text(request)).get('logout_token')!);
  response.end();
});
const { gateway, disabled, stop } = await startIdentityStack([ida], receiver.origin);
afterAll(async () => {
  await stop();
  receiver.close();
});

const params = { identity: 'identity' };
const sha256 = (text: string) => createHash('sha256').update(text).digest();

async function begin() {
  const browser = createBrowser();
  const verifier = randomBytes(32).toString('base64url');
  const query = {
    return_to: returnTo,
    state: 'mine',
    code_challenge: sha256(verifier).toString('base64url'),
  };
  const login = await browser.go(`${gateway}/api/identity/login?${new URLSearchParams(query).toString()}`);
  return { browser, verifier, query, there: new URL(login.headers.get('location')!) };
}

/** Logs in at the identity provider and returns the redirect to the client, with the browser's cookies. */
async function comeBack() {
  const begun = await begin();
  const back = await begun.browser.logInThere(begun.there, ida.subject);
  const cookie = [...begun.browser.cookies].map((pair) => pair.join('=')).join('; ');
  return { ...begun, back, headers: { cookie }, query: Object.fromEntries(back.searchParams) };
}

async function logIn() {
  const { browser, back, verifier, there } = await comeBack();
  const landed = new URL((await browser.go(back)).headers.get('location')!);
  const answer = await call(gateway, contract.token, {
    body: {
      grant_type: 'urn:content-platform:identity-code',
      code: landed.searchParams.get('code')!,
      code_verifier: verifier,
    },
  });
  if (answer.error) throw new Error(answer.error.message);
  const { access_token: token, refresh_token } = answer.body;
  return { browser, provider: there.origin, landed, token, refreshToken: refresh_token! };
}

type Ask = (options: never) => Promise<Pick<Answer<contract.Endpoint>, 'error'>>;
/** Without an identity provider, the reserved name returns 501 and other names return 404. */
function testDisabled(ask: Ask, options: { body?: object } = {}) {
  test('returns 501 when disabled and 404 for another name', async () => {
    const off = await ask({ ...options, params: { identity: 'identity' }, at: disabled } as never);
    expect(off.error?.error).toBe('identity_login_disabled');
    const other = await ask({ ...options, params: { identity: 'unknown' } } as never);
    expect(other.error?.error).toBe('not_found');
  });
}

describeEndpoint(contract.identityLogin, {}, ({ ask }) => {
  test('redirects the browser to the identity provider and sets a cookie', async () => {
    const { query } = await begin();
    const { status, headers } = await ask({ params, query });
    expect(status).toBe(302);
    expect(headers.get('location')).toContain('/auth?');
    // The test uses loopback without https, where browsers refuse __Host- cookies.
    expect(headers.get('set-cookie')).toMatch(
      /^identity-login=[\w-]{43}; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/,
    );
    expect(headers.get('cache-control')).toBe('no-store');
  });

  testDisabled(ask);
});

describeEndpoint(contract.identityCallback, {}, ({ ask }) => {
  test('redirects the browser to the client with a code that yields tokens', async () => {
    const { landed, token } = await logIn();
    expect(landed.origin + landed.pathname).toBe(returnTo);
    expect(Object.fromEntries(landed.searchParams)).toEqual({
      state: 'mine',
      code: expect.stringMatching(/^[\w-]{43}$/) as unknown,
    });
    expect((await call(gateway, contract.me, { token })).body).toMatchObject({ email: ida.email });
  });

  test('accepts a state once', async () => {
    const { query, headers } = await comeBack();
    expect((await ask({ params, query, headers })).status).toBe(302);
    expect((await ask({ params, query, headers })).error?.error).toBe('identity_login_unknown');
  });

  test('returns 403 in another browser', async () => {
    const { query } = await comeBack();
    expect((await ask({ params, query })).error?.error).toBe('identity_other_browser');
  });

  test('returns 400 after ten minutes', async () => {
    const { query, headers, there } = await comeBack();
    const old = `UPDATE auth.identity_login SET created_at = now() - interval '11 minutes' WHERE state_hash = $1`;
    await database().query(old, [sha256(there.searchParams.get('state')!)]);
    expect((await ask({ params, query, headers })).error?.error).toBe('identity_login_expired');
  });

  testDisabled(ask);
});

describeEndpoint(contract.backchannelLogout, { body: { logout_token: 'a.b.c' } }, ({ ask, send }) => {
  test('ends the session of a user who has logged out at the identity provider', async () => {
    const { browser, provider, token } = await logIn();
    const page = await (await browser.go(`${provider}/session/end`)).text();
    const xsrf = /name="xsrf" value="([^"]+)"/.exec(page)![1]!;
    const confirmed = { method: 'POST', body: new URLSearchParams({ xsrf, logout: 'yes' }) };
    await browser.go(`${provider}/session/end/confirm`, confirmed);
    await until('the provider has sent a logout token', () => logoutTokens.length > 0);
    const body = { logout_token: logoutTokens.at(-1)! };
    expect((await ask({ params, body })).status).toBe(200);
    expect((await ask({ params, body })).error?.error).toBe('invalid_request');
    await until('the access token is refused', async () => {
      return (await call(gateway, contract.me, { token })).status === 401;
    });
  });

  test('refuses a token that is missing or repeated', async () => {
    for (const body of ['', 'logout_token=', 'logout_token=a&logout_token=b'])
      expect((await send({ body })).error?.error).toBe('invalid_request');
  });

  testDisabled(ask, { body: { logout_token: 'a.b.c' } });
});

describeEndpoint(contract.identityLogout, {}, ({ ask }) => {
  test('ends the session and returns the logout URL of the identity provider', async () => {
    const { token, refreshToken } = await logIn();
    expect((await ask({ params, token })).body?.logout_url).toMatch(/\/session\/end\?.*id_token_hint=/);
    const body = { grant_type: 'refresh_token', refresh_token: refreshToken };
    expect((await call(gateway, contract.token, { body })).error?.details?.[0]?.message).toBe('revoked');
  });

  testDisabled(ask);
});

describeEndpoint(contract.updateSuborg, { body: { suborg: 'north' } }, ({ ask }) => {
  test('accepts only suborgs that the identity provider listed for the user', async () => {
    const { token, refreshToken } = await logIn();
    const chosen = await ask({ params, token, body: { suborg: 'south' } });
    expect(chosen).toMatchObject({ status: 200, body: { success: true, user: { suborg: 'south' } } });
    expect((await call(gateway, contract.me, { token })).body).toMatchObject({ suborg: 'south' });
    const body = { grant_type: 'refresh_token', refresh_token: refreshToken };
    const next = (await call(gateway, contract.token, { body })).body!.access_token;
    const claims = JSON.parse(Buffer.from(next.split('.')[1]!, 'base64url').toString()) as object;
    expect(claims).toMatchObject({ suborg: 'south' });
    expect((await ask({ params, token, body: { suborg: 'west' } })).error?.error).toBe('suborg_not_allowed');
  });

  testDisabled(ask, { body: { suborg: 'north' } });
});
