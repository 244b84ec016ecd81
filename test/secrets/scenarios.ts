import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { admin } from '../support/admin.ts';
import { emails, machine, password as demoPassword } from '../support/accounts.ts';
import { announce } from '../support/events.ts';
import { client as platform, createBrowser } from '../support/identity.ts';
import { returnTo } from '../support/identity-stack.ts';
import { newLetter } from '../support/letters.ts';
import { newPdf, newImage } from '../support/media.ts';
import { database } from '../support/records.ts';
import { sendRaw } from '../support/raw-http.ts';
import { stack } from '../support/stack.ts';
import { until } from '../support/wait.ts';
import { logIn, newPassword, type Client } from './client.ts';

const basic = (id: string, secret: string) =>
  Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64');

/** Creates a user with a chosen password as an admin. */
export async function newPerson(client: Client) {
  const { token } = await logIn(client, emails.admin, demoPassword);
  const email = `scan-${randomUUID()}@example.com`;
  const password = client.keep('password', newPassword());
  const json = { email, name: 'Sven Scan', password };
  const { id } = await client.ask<{ id: number }>(201, '/api/admin/users', { json, token });
  return { id, email, password, admin: token };
}
export type NewPerson = Awaited<ReturnType<typeof newPerson>>;
export async function passwords(client: Client, person: NewPerson): Promise<void> {
  const { keep, send, ask } = client;
  const { email, password, id } = person;
  const wrong = () => keep('wrong password', newPassword());
  // Also a password in the email field, and an unknown email.
  for (const address of [email, password, 'unknown@example.com'])
    await ask(401, '/api/login', { json: { email: address, password: wrong() } });
  for (const other of [{ more: password }, { password: [password] }, { password: password.repeat(60) }])
    await ask(422, '/api/login', { json: { email, password, ...other } });
  const json = { 'Content-Type': 'application/json' };
  for (const body of [
    `{"email":"${email}","password":"${wrong()}"`,
    `{"email":"${email}","password":${wrong()}}`,
    `${wrong()}`,
  ])
    await ask(400, '/api/login', { body, headers: json });
  await ask(415, '/api/login', { form: { email, password } });
  await ask(415, '/api/login', { body: password, headers: { 'Content-Type': 'text/plain' } });
  await ask(405, `/api/login?email=${email}&password=${encodeURIComponent(password)}`);
  await send(`/api/login?password=${encodeURIComponent(password)}`, { json: { email, password } });
  const referred = { Referer: `http://x/?p=${encodeURIComponent(password)}` };
  await ask(401, '/api/login', { json: { email, password: wrong() }, headers: referred });

  const { token } = await logIn(client, email, password);
  const next = keep('password', newPassword());
  const easy = keep('refused password', 'QwertyuiopQwertyuiop');
  for (const [status, current_password, new_password] of [
    [422, wrong(), next],
    [422, password, password],
    [422, password, easy],
    [204, password, next],
  ] as const)
    await ask(status, '/api/password', { json: { current_password, new_password }, token });
  await logIn(client, email, next);
  person.password = next;

  const at = `/api/admin/users/${id}/temporary-password`;
  const made = await ask<{ temporary_password: string }>(200, at, { method: 'POST', token: person.admin });
  const temporary = keep('temporary password', made.temporary_password);
  const limited = await logIn(client, email, temporary);
  await ask(403, '/api/sessions', { token: limited.token });
  await ask(401, '/api/login', { json: { email, password: temporary } });
  person.password = keep('password', newPassword());
  const change = { current_password: temporary, new_password: person.password };
  await ask(204, '/api/password', { json: change, token: limited.token });
  const asAdmin = { token: person.admin };
  const taken = { email, name: 'Sven Scan', password: newPassword() };
  await ask(409, '/api/admin/users', { json: taken, ...asAdmin });
  await ask(422, '/api/admin/users', {
    json: { ...taken, email: 'x@example.com', password: easy },
    ...asAdmin,
  });
  const search = encodeURIComponent(person.password.slice(0, 30));
  await ask(200, `/api/admin/users?search=${search}`, asAdmin);
  await ask(200, '/api/admin/audit', asAdmin);
}

/** Uses every grant, valid and invalid, and sends tokens in wrong places. */
export async function tokens(client: Client, person: NewPerson): Promise<void> {
  const { keep, send, ask } = client;
  const secret = keep('client secret', await admin('create-client', 'scan-client', '--scope', 'cache:clear'));
  const grant = { grant_type: 'client_credentials' };
  const wrong = keep('wrong client secret', randomBytes(32).toString('base64url'));
  for (const [status, given] of [
    [200, secret],
    [401, wrong],
  ] as const) {
    const Authorization = `Basic ${keep('Basic credentials', basic('scan-client', given))}`;
    const withSecret = { ...grant, client_id: 'scan-client', client_secret: given };
    for (const sent of [
      { form: grant, headers: { Authorization } },
      { form: withSecret },
      { json: withSecret },
    ]) {
      const { access_token } = await ask<{ access_token?: string }>(status, '/api/token', sent);
      if (access_token) keep('access token', access_token);
    }
  }
  const swapped = { grant_type: secret, client_id: 'scan-client', client_secret: secret };
  await ask(400, '/api/token', { form: swapped });
  await send(`/api/token?client_secret=${secret}`, { form: grant });
  keep('client secret', await admin('rotate-client', 'scan-client'));

  const first = await logIn(client, person.email, person.password);
  const refresh = (refresh_token: string, status: number) =>
    ask<{ access_token: string; refresh_token: string }>(status, '/api/token', {
      form: { grant_type: 'refresh_token', refresh_token },
    });
  const second = await refresh(first.refresh_token, 200);
  keep('access token', second.access_token);
  keep('refresh token', second.refresh_token);
  await refresh(keep('refresh token of nobody', randomBytes(32).toString('base64url')), 400);
  await database().query("UPDATE auth.refresh_token SET replaced_at = replaced_at - interval '1 minute'");
  await refresh(first.refresh_token, 400);
  const isRevoked = async () => (await send('/api/me', { token: second.access_token })).status === 401;
  await until('it is revoked with its session', isRevoked);

  const { token, refresh_token } = await logIn(client, person.email, person.password);
  for (const target of [
    `/api/me?access_token=${token}`,
    `/api/me?token=${refresh_token}`,
    `/api/${token}`,
    `/api/content/${token}/1`,
    `/api/content/webform/1?view=${token}`,
    `/api/sessions/${refresh_token}`,
    `/api/${encodeURIComponent(person.password)}`,
  ])
    await send(target, { token });
  for (const Authorization of [
    `Bearer  ${token}`,
    `Bearer ${token} ${refresh_token}`,
    `Bearer ${token}x`,
    `Bearer ${token.slice(0, -40)}`,
    `Bearer ${refresh_token}`,
    `Token ${token}`,
    token,
    `Basic ${Buffer.from(`${person.email}:${person.password}`).toString('base64')}`,
    `Bearer ${'x'.repeat(5_000)}${token}`,
  ])
    await send('/api/me', { headers: { Authorization } });
  const others = {
    Cookie: `session=${refresh_token}`,
    Referer: `http://x/?t=${token}`,
    'Proxy-Authorization': `Bearer ${token}`,
    'X-Api-Key': refresh_token,
  };
  await send('/api/me', { token, headers: others });
  await send('/api/nothing', { token, headers: others });
  // Requests that no HTTP client would send.
  const { gateway } = stack();
  const me = `GET /api/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n`;
  for (const raw of [
    `${me}Authorization: Bearer ${refresh_token}\r\n\r\n`,
    `${me}Bro ken: ${refresh_token}\r\n\r\n`,
    `${me}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n${refresh_token}`,
    `GET /api/me?${token} HTTP/9.9\r\nAuthorization: Bearer ${token}\r\n\r\n`,
    `${token} /api/me HTTP/1.1\r\nHost: x\r\n\r\n`,
    `${me}X: ${'x'.repeat(20_000)}\r\n\r\n`,
  ])
    client.errors.push({ name: 'error replies', content: await sendRaw(gateway, raw) });
  await ask(204, '/api/logout', { method: 'POST', token });
  await until('it is revoked', async () => (await send('/api/me', { token })).status === 401);
  await refresh(refresh_token, 400);
}

/** Logs in at the identity provider, successfully and with every error. */
export async function identityLogin(client: Client, subject: string): Promise<void> {
  const { keep, ask, send } = client;
  const { gateway } = stack();
  const random = (kind: string) => keep(kind, randomBytes(32).toString('base64url'));
  const verifier = random('code verifier');
  const state = keep('state of the client', randomBytes(16).toString('base64url'));
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  const begin = async () => {
    const browser = createBrowser();
    const query = new URLSearchParams({ return_to: returnTo, state, code_challenge: challenge });
    const login = await browser.go(`${gateway}/api/identity/login?${query.toString()}`);
    const there = new URL(login.headers.get('location')!);
    keep('state at the identity provider', there.searchParams.get('state')!);
    keep('nonce', there.searchParams.get('nonce')!);
    for (const [name, value] of browser.cookies)
      if (name === 'identity-login') keep('cookie of a login', value);
    return { browser, there };
  };
  const comeBack = async () => {
    const { browser, there } = await begin();
    const back = await browser.logInThere(there, subject);
    keep('code of the identity provider', back.searchParams.get('code')!);
    return { browser, back };
  };
  /** Completes a login up to the code. */
  const land = async () => {
    const { browser, back } = await comeBack();
    const landed = new URL((await browser.go(back)).headers.get('location')!);
    return keep('code for tokens', landed.searchParams.get('code')!);
  };
  type Tokens = { access_token: string; refresh_token: string };
  const exchange = (status: number, code: string, code_verifier = verifier) =>
    ask<Tokens>(status, '/api/token', {
      form: { grant_type: 'urn:content-platform:identity-code', code, code_verifier },
    });
  const exchanged = async (code: string) => {
    const { access_token, refresh_token } = await exchange(200, code);
    keep('refresh token', refresh_token);
    return keep('access token', access_token);
  };

  const { browser, back } = await comeBack();
  await send(back.href);
  const other = await comeBack();
  const forged = new URL(other.back);
  forged.searchParams.set('code', random('code of nobody'));
  await other.browser.go(forged);
  const lost = await begin();
  const evil = `return_to=https://evil.example/&state=${state}&code_challenge=${challenge}`;
  await ask(422, `/api/identity/login?${evil}`);
  const denied = `state=${lost.there.searchParams.get('state')}&error=access_denied`;
  await send(`/api/identity/login/callback?${denied}`);
  // A login that is never completed.
  await begin();

  const code = await land();
  // The first login was completed in another browser.
  await browser.go(back);
  await exchange(400, random('code of nobody'));
  await exchanged(code);
  await exchange(400, code);
  await exchange(400, await land(), random('wrong code verifier'));
  await exchanged(await land()); // this session stays, with its ID token
  const leave = { method: 'POST', token: await exchanged(await land()) };
  const { logout_url } = await ask<{ logout_url: string }>(200, '/api/identity/logout', leave);
  keep('ID token', new URL(logout_url).searchParams.get('id_token_hint')!);
}
export async function pulse(client: Client): Promise<void> {
  const { keep, send, ask } = client;
  const page = { Origin: stack().gateway, Accept: 'text/html' };
  const form = { email: emails.sre, password: keep('wrong password', newPassword()) };
  await ask(401, '/pulse/sign-in', { form, headers: page });
  await ask(403, '/pulse/sign-in', { form, headers: { Origin: 'https://evil.example' } });
  const signedIn = await send('/pulse/sign-in', { form: { ...form, password: demoPassword }, headers: page });
  const [cookie = ''] = signedIn.headers.getSetCookie().map((line) => line.split(';')[0]!);
  const value = keep('cookie of the pulse', cookie.split('=')[1]!);
  await ask(200, '/pulse', { headers: { Cookie: cookie } });
  await send(`/pulse?pulse=${value}`, { headers: { Cookie: `pulse=${value}x` } });
  await send('/api/me', { headers: { Cookie: cookie } });
  await ask(404, `/pulse/assets/${value}`, { headers: { Cookie: cookie } });
  await ask(303, '/pulse/sign-out', { method: 'POST', headers: { Cookie: cookie, ...page } });
  await ask(401, '/pulse', { headers: { Cookie: cookie } });
}

/** Uses files, devices, letters and content, with secrets in right and wrong places. */
export async function filesAndLetters(client: Client, person: NewPerson): Promise<void> {
  const { keep, send, ask } = client;
  const { token } = await logIn(client, person.email, person.password);

  const inside = keep('text of a form', randomBytes(24).toString('base64url'));
  const form = (name: string, part: Blob | string) => {
    const data = new FormData();
    data.set(name, part as Blob);
    return data;
  };
  await ask(201, '/api/upload', { body: form('file', new File([await newImage()], 'a.jpg')), token });
  await ask(201, '/api/upload', {
    body: form('file', new File([newPdf(), inside], 'a.pdf')),
    token,
    headers: { 'Idempotency-Key': 'scan' },
  });
  await ask(422, '/api/upload', { body: form('password', inside), token });
  await ask(415, '/api/upload', { body: form('file', new File([inside], 'a.txt')), token });
  await send('/api/upload', {
    body: `--x\r\nContent-Disposition: form-data; ${inside}\r\n\r\n${inside}`,
    headers: { 'Content-Type': 'multipart/form-data; boundary=x' },
    token,
  });

  const push = () =>
    keep('push token', `${randomBytes(8).toString('hex')}:APA91b${randomBytes(30).toString('base64url')}`);
  const kept = push();
  await ask(200, '/api/register-fcm-token', { json: { token: kept, platform: 'android' }, token });
  const leaving = push();
  await ask(200, '/api/register-fcm-token', { json: { token: leaving }, token });
  for (const json of [
    { token: push(), platform: 'toaster' },
    { token: push(), more: push() },
    { token: [push()] },
  ])
    await ask(422, '/api/register-fcm-token', { json, token });
  const headers = { 'Content-Type': 'application/json' };
  await ask(400, '/api/register-fcm-token', { body: `{"token": ${push()}}`, headers, token });
  await ask(422, `/api/devices/${push().slice(0, 16)}`, { method: 'DELETE', token });
  const feedback = (status: number, ...outcomes: string[]) => {
    const results = outcomes.map((outcome) => ({ token: push(), outcome }));
    return ask(status, '/api/admin/devices/feedback', { json: { results }, token: person.admin });
  };
  await feedback(200, 'unregistered', 'delivered');
  await feedback(422, 'lost');
  await ask(200, `/api/admin/users/${person.id}/device-tokens`, { token: person.admin });

  const letter = await newLetter({ userId: person.id });
  const skip = { letter_id: letter, webform_id: 2, skipped: true };
  await ask(200, '/api/updateLetterSkippedWebform', { json: skip, token });
  await ask(422, '/api/updateLetterSkippedWebform', { json: { ...skip, password: person.password }, token });
  await ask(428, `/api/letters/${letter}`, { method: 'PATCH', json: { title: 'X' }, token: person.admin });
  await ask(200, '/api/content/webform/1', { token });
  await ask(422, '/api/admin/cache/clear-pattern', {
    json: { pattern: person.password.slice(0, 20) },
    token: person.admin,
  });
  await ask(200, '/api/admin/cache/clear-model', { json: { model: 'webform', id: 1 }, token: person.admin });

  const gone = await logIn(client, person.email, person.password);
  await ask(204, '/api/logout', { json: { fcm_token: leaving }, token: gone.token });
}

/** Sends events that cannot be processed. Their bodies are stored for inspection and must not appear elsewhere. */
export async function failedJobs(client: Client, person: NewPerson): Promise<void> {
  const { keep, send, ask } = client;
  const inEvent = () => keep('text of an event', randomBytes(24).toString('base64url'));
  const values = [
    `{"password": "${inEvent()}"`,
    inEvent(),
    JSON.stringify({ model: inEvent(), id: 1 }),
    JSON.stringify({ model: 'webform', id: inEvent() }),
    JSON.stringify({ model: 'webform', id: 1, [inEvent()]: inEvent() }),
    JSON.stringify({ pattern: inEvent() }),
  ];
  // One of these events is accepted: unknown fields may come from a later version.
  const bad = values.length - 1;
  for (const value of values) await announce(value, inEvent(), { secret: inEvent() });
  type Jobs = { items: { id: number }[] };
  const token = person.admin;
  const jobs = await until('they are listed', async () => {
    const { items } = await ask<Jobs>(200, '/api/admin/failed-jobs', { token });
    return items.length >= bad && items;
  });
  for (const { id } of jobs) await send(`/api/admin/failed-jobs/${id}/retry`, { method: 'POST', token });
  await ask(200, '/api/admin/failed-jobs/classes', { token });
  await ask(200, '/api/admin/failed-jobs/retry', { json: {}, token });
  await ask(200, '/api/admin/failed-jobs', {
    method: 'DELETE',
    json: { state: 'open', dry_run: true },
    token,
  });
}

/** Records the secrets that no client receives: those of the demo data and of the stack. */
export function keepStackSecrets({ keep }: Client, own: Record<string, string>): void {
  keep('password', demoPassword);
  keep('client secret', machine.secret);
  keep('client secret', platform.secret);
  for (const [kind, value] of Object.entries(own)) keep(kind, value);
}
