import { expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { emails, logIn, newAddress, newUser, password, tokenOf } from '../../../test/support/accounts.ts';
import { stack } from '../../../test/support/stack.ts';
import { codeOf, enrol } from '../../../test/support/totp.ts';
import { browser, cookieOf, onThePage } from '../../../test/support/pulse.ts';
import { read } from '../../../test/support/platform.ts';
import { until } from '../../../test/support/wait.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

const { gateway } = stack();
const form = (email: string, secret: string) => new URLSearchParams({ email, password: secret }).toString();

/** Signs in with the form, from a new client IP address. */
function signIn(email: string, secret = password, headers: Record<string, string> = onThePage()) {
  return fetch(`${gateway}/pulse/sign-in`, {
    method: 'POST',
    headers: {
      ...headers,
      'X-Forwarded-For': newAddress(),
      'Content-Type': 'application/x-www-form-urlencoded',
    },
    body: form(email, secret),
    redirect: 'manual',
  });
}

async function sessionsOf({ token }: { token: string }): Promise<number> {
  return (await call(gateway, contract.listSessions, { token })).body!.items.length;
}

const withCookie = (cookie: string) => fetch(`${gateway}/pulse`, { headers: { ...browser, Cookie: cookie } });

describeEndpoint(contract.pulse, { path: '/pulse', as: 'sre' }, ({ ask, send }) => {
  test('reports the targets, the routes, the cache and every process', async () => {
    await Promise.all(Array.from({ length: 30 }, (_, index) => read('webform', 1 + (index % 3))));
    const route = expect.objectContaining({ method: 'GET', route: '/api/content/:model/:id' }) as unknown;
    await until('a sample has seen the reads and every process', async () => {
      const report = (await ask()).body!;
      const webforms = report.cache.models.find(({ model }) => model === 'webform')!;
      expect(webforms.hits + webforms.misses + webforms.bypasses).toBeGreaterThanOrEqual(30);
      expect(report.targets.map(({ name }) => name)).toEqual(Object.keys(contract.targetGoals));
      expect(report.targets.find(({ name }) => name === 'invalidation_queue')).toMatchObject({ goal: 100 });
      expect(report.routes).toContainEqual(route);
      const up = report.processes.filter((process) => process.up).map(({ service }) => service);
      expect(up.toSorted()).toEqual(Object.keys(stack().services).toSorted());
      expect([report.slow, report.failed_jobs]).not.toContain(null);
      return true;
    });
  });

  test('serves a browser the page', async () => {
    const response = await fetch(`${gateway}/pulse`, {
      headers: { ...browser, Authorization: `Bearer ${await tokenOf(gateway, 'sre')}` },
    });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-store');
    const policy = response.headers.get('content-security-policy')!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain('unsafe');
    const text = await response.text();
    expect(text).not.toMatch(/ style=|<style|<script>| on\w+=/);
  });

  test.each([
    ['no token', {}, 'token_required'],
    ['no token of ours', { Authorization: 'Bearer a.b.c' }, 'invalid_token'],
  ])('%s: returns 401, to a browser with the sign-in form', async (_, headers, code) => {
    const path = '/pulse';
    const plain = await fetch(gateway + path, { headers });
    expect(plain.headers.get('www-authenticate')).toMatch(/^Bearer/);
    expect(await plain.json()).toMatchObject({ error: code, code: 401 });
    const page = await fetch(gateway + path, { headers: { ...headers, ...browser } });
    expect(page.status).toBe(401);
    expect(page.headers.get('www-authenticate')).toMatch(/^Bearer/);
    expect(await page.text()).toContain('action="/pulse/sign-in"');
    expect((await send({ headers: { Authorization: '', ...headers } })).error?.error).toBe(code);
    expect((await send({ headers: { Authorization: '', ...headers, ...browser } })).status).toBe(401);
  });

  test('returns 403 without pulse:view, to a browser as a page', async () => {
    for (const as of ['user', 'machine'] as const)
      expect((await ask({ as })).error?.error).toBe('insufficient_scope');
    expect((await ask({ as: 'temporary' })).error?.error).toBe('password_change_required');
    expect((await send({ as: 'user', headers: browser })).status).toBe(403);
  });
});

const pulseSignInExample = { path: '/pulse/sign-in', body: { email: emails.sre, password } } as const;
describeEndpoint(contract.pulseSignIn, pulseSignInExample, ({ ask, send }) => {
  const own = () => ({ 'X-Forwarded-For': newAddress(), Origin: gateway });

  test('sets a cookie limited to /pulse, which shows the page until the next sign-in', async () => {
    const response = await signIn(emails.sre);
    expect([response.status, response.headers.get('location')]).toEqual([303, '/pulse']);
    const [cookie] = response.headers.getSetCookie();
    expect(cookie).toMatch(/^pulse=[\w-]{43}; Max-Age=43200; Path=\/pulse; HttpOnly; SameSite=Strict$/);
    const headers = { ...own(), Cookie: cookieOf(response.headers) };
    const page = await withCookie(headers.Cookie);
    expect(page.status).toBe(200);
    expect(await page.text()).toContain('Sign out');
    expect((await fetch(`${gateway}/api/me`, { headers })).status).toBe(401);
    expect((await ask({ body: { email: emails.sre, password }, headers })).status).toBe(303);
    expect((await withCookie(headers.Cookie)).status).toBe(401);
  });

  test('returns 401 for a wrong password, with the form and the reason', async () => {
    const response = await signIn(emails.sre, 'wrong password');
    expect(response.status).toBe(401);
    expect(response.headers.getSetCookie()).toEqual([]);
    const text = await response.text();
    expect(text).toContain('The email or the password is wrong.');
    expect(text).toContain(`value="${emails.sre}"`);
    expect(text).not.toContain('type="email"'); // Browsers allow only ASCII before the @ of such a field.
    const long = '\ufb2c'.repeat(254); // NFC triples its length.
    expect((await send({ body: form(long, 'x'), headers: own() })).error?.error).toBe('invalid_credentials');
    for (const email of [long, ' ']) expect((await signIn(email, 'x')).status).toBe(401);
  });

  test('asks for the code of a user with a second factor', async () => {
    const user = await newUser('sre');
    const { secret } = await enrol(gateway, user.token);
    const body = form(user.email, user.password);
    expect((await send({ body, headers: own() })).error?.error).toBe('mfa_required');
    const page = await signIn(user.email, user.password);
    expect(await page.text()).toContain('Enter the code of your authenticator app');
    const withCode = `${body}&code=${codeOf(secret).replace(/^.../, '$&+')}`;
    expect((await send({ body: withCode, headers: own() })).status).toBe(303);
    expect((await send({ body: withCode, headers: own() })).error?.error).toBe('invalid_credentials');
  });

  test('returns 403 without pulse:view and ends the new session', async () => {
    const user = await newUser();
    const response = await signIn(user.email, user.password);
    expect(response.status).toBe(403);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(await response.text()).toContain('pulse:view');
    expect(await sessionsOf(user)).toBe(1);
    const body = form(user.email, user.password);
    expect((await send({ body, headers: own() })).error?.error).toBe('insufficient_scope');
    expect((await send({ body, headers: { ...own(), ...browser } })).status).toBe(403);
  });

  test('returns 403 for a temporary password and explains what to do', async () => {
    const { id, email } = await newUser('sre');
    const asAdmin = { params: { id }, token: await tokenOf(gateway, 'admin') };
    const { body } = await call(gateway, contract.createTemporaryPassword, asAdmin);
    const { error } = await send({ body: form(email, body!.temporary_password), headers: own() });
    expect(`${error?.error} ${error?.message}`).toMatch(/^password_change_required .*Then sign in here/);
  });

  test('limits wrong passwords by client IP address and then refuses with the form', async () => {
    const address = newAddress();
    const guess = (headers: Record<string, string>) =>
      send({
        body: form(`unknown-${address}@example.com`, 'guess'),
        headers: { ...own(), ...headers, 'X-Forwarded-For': address },
      });
    await until('there were too many', async () => {
      const { status, error } = await guess(browser);
      return status === 429 && !error;
    });
    await until('a program gets 429, too', async () => (await guess({})).error?.message.match(/in \d+ s/));
    const body = form(`unknown-${address}@example.com`, 'guess');
    expect((await send({ body, headers: own() })).error?.error).toBe('invalid_credentials');
  });

  test.each([
    ['of another origin', { Origin: 'https://evil.example' }],
    ['without an origin', {}],
    ['of another origin on the same site', { 'Sec-Fetch-Site': 'same-site' }],
  ])('returns 403 from a page %s', async (_, headers) => {
    const response = await signIn(emails.sre, password, { ...browser, ...headers });
    expect(response.status).toBe(403);
    expect(response.headers.getSetCookie()).toEqual([]);
    const body = form(emails.sre, password);
    expect((await send({ body, headers })).error?.error).toBe('other_origin');
  });

  test('accepts a page at another name of the same address if the browser reports same-origin', async () => {
    const headers = { ...browser, Origin: 'http://localhost:1', 'Sec-Fetch-Site': 'same-origin' };
    expect((await signIn(` ${emails.sre} `, password, headers)).status).toBe(303); // Keyboards add spaces.
  });

  test('returns 422 for other fields', async () => {
    expect((await send({ body: 'email=a', headers: own() })).error?.error).toBe('validation_failed');
  });
});

describeEndpoint(contract.pulseSignOut, { path: '/pulse/sign-out' }, ({ ask, send }) => {
  test('ends the session, at auth as well', async () => {
    const user = await newUser('sre');
    const cookie = cookieOf((await signIn(user.email, user.password)).headers);
    expect((await withCookie(cookie)).status).toBe(200);
    expect(await sessionsOf(user)).toBe(2);
    const response = await fetch(`${gateway}/pulse/sign-out`, {
      method: 'POST',
      headers: { ...onThePage(), Cookie: cookie },
      redirect: 'manual',
    });
    expect([response.status, response.headers.get('location')]).toEqual([303, '/pulse']);
    expect(response.headers.getSetCookie()[0]).toMatch(/^pulse=; Max-Age=0; Path=\/pulse/);
    expect(await sessionsOf(user)).toBe(1);
    expect((await withCookie(cookie)).status).toBe(401);
  });

  test('redirects without a session', async () => {
    expect((await ask({ headers: { Origin: gateway } })).status).toBe(303);
  });

  test('returns 403 from another page', async () => {
    expect((await send({})).error?.error).toBe('other_origin');
    expect((await send({ headers: browser })).status).toBe(403);
  });
});

test('shows the form once the session was ended elsewhere', async () => {
  const user = await newUser('sre');
  const cookie = cookieOf((await signIn(user.email, user.password)).headers);
  const { token } = await logIn(user.email, user.password);
  await call(gateway, contract.deleteSessions, { token });
  const page = await until('pulse knows', async () => {
    const response = await withCookie(cookie);
    return response.status === 401 && response.text();
  });
  expect(page).toContain('You were signed out.');
});

const job = '9007199254740991';
const pulseRetryExample = { path: `/pulse/failed-jobs/${job}/retry`, as: 'sre' } as const;
describeEndpoint(contract.pulseRetry, pulseRetryExample, ({ ask, send }) => {
  test('redirects to a URL with the outcome', async () => {
    const answer = await ask({ params: { id: job }, headers: { Origin: gateway } });
    expect([answer.status, answer.headers.get('location')]).toEqual([303, `/pulse?job=${job}&outcome=gone`]);
    const text = await fetch(`${gateway}/pulse?job=${job}&outcome=gone`, {
      headers: { ...browser, Authorization: `Bearer ${await tokenOf(gateway, 'sre')}` },
    }).then((response) => response.text());
    expect(text).toContain(`<title>Job ${job} was not found. `); // Screen readers read the title first.
  });

  test('refuses callers without the permission, origin or a valid token', async () => {
    const headers = { Origin: gateway };
    expect((await send({ headers, as: 'user' })).error?.error).toBe('insufficient_scope');
    expect((await send({ headers: { ...headers, ...browser }, as: 'user' })).status).toBe(403);
    expect((await send({ headers, as: 'temporary' })).error?.error).toBe('password_change_required');
    expect((await send({})).error?.error).toBe('other_origin');
    const signedOut = { ...headers, Authorization: '' };
    expect((await send({ headers: signedOut })).error?.error).toBe('token_required');
    expect((await send({ headers: { ...signedOut, ...browser } })).status).toBe(401);
    const other = { ...headers, Authorization: 'Bearer a.b.c' };
    expect((await send({ headers: other })).error?.error).toBe('invalid_token');
    const path = '/pulse/failed-jobs/x/retry';
    expect((await send({ path, headers })).error?.error).toBe('validation_failed');
  });
});

describeEndpoint(contract.pulseAsset, { path: '/pulse/assets/pulse.css' }, ({ ask, send }) => {
  test.each(['pulse.css', 'pulse.js', 'pulse.svg'])('%s: returns 304 for the current ETag', async (file) => {
    const { status, headers } = await ask({ params: { file } });
    expect(status).toBe(200);
    const etag = headers.get('etag')!;
    expect((await ask({ params: { file }, headers: { 'If-None-Match': etag } })).status).toBe(304);
  });

  test('returns 404 for every other file', async () => {
    for (const file of ['main.ts', '__proto__', 'pulse.css%20'])
      expect((await send({ path: `/pulse/assets/${file}` })).error?.error).toBe('not_found');
  });
});
