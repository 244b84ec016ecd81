import { afterAll, beforeAll, expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { client, createBrowser } from '../../../test/support/identity.ts';
import { until } from '../../../test/support/wait.ts';
import { type EvilProvider, startEvilProvider } from '../identity/testing/evil-provider.ts';
import { type Scene, startScene } from '../identity/testing/scene.ts';
import { decode } from '../testing.ts';

const people = [{ subject: 'ann', name: 'Ann', email: 'ann@example.com', emailVerified: true, suborgs: [] }];
let scene: Scene;

beforeAll(async () => void (scene = await startScene({ people })));
afterAll(() => scene.stop());

const logout = ({ auth }: Scene, token: string) =>
  call(auth.origin, contract.identityLogout, { params: { identity: 'identity' }, token });

const isOut = ({ auth }: Scene, token: string) =>
  until('the token is refused', async () => (await call(auth.origin, contract.me, { token })).status === 401);

test('our session ends, and the address ends the one there', async () => {
  const { access_token: token, refresh_token } = await scene.tokensOf('ann');
  const { status, body } = await logout(scene, token);
  expect(status).toBe(200);
  const there = new URL(body!.logout_url!);
  expect(there.origin + there.pathname).toBe(`${scene.issuer}/session/end`);
  expect(there.searchParams.get('client_id')).toBe(client.id);
  expect(decode(there.searchParams.get('id_token_hint')!).claims).toMatchObject({ sub: 'ann' });
  expect((await createBrowser().go(there)).status).toBe(200);
  await isOut(scene, token);
  const refresh = { grant_type: 'refresh_token', refresh_token: refresh_token! };
  expect((await call(scene.auth.origin, contract.token, { body: refresh })).status).toBe(400);
  expect((await scene.events())[0]).toMatchObject({ event: 'logout' });
});

test('a session with a password ends, too, and has no such address', async () => {
  const who = { email: 'pat@example.com', password: 'a long password of theirs' };
  await scene.auth.addUser(who.email, who.password);
  const { token } = (await call(scene.auth.origin, contract.login, { body: who })).body!;
  expect(await logout(scene, token)).toMatchObject({ status: 200, body: {} });
  await isOut(scene, token);
});

test('an ID token of another identity service is not sent to this one', async () => {
  const { access_token: token } = await scene.tokensOf('ann');
  const move = `UPDATE auth.session SET identity_issuer = 'https://old.example' WHERE identity_issuer IS NOT NULL`;
  await scene.auth.database.query('move', move);
  expect((await logout(scene, token)).body).toEqual({});
});

test('an identity service without such a place keeps nobody logged in here', async () => {
  const evil: EvilProvider = await startEvilProvider();
  const own = await startScene({ issuer: evil.issuer });
  const { browser, there, verifier } = await own.begin();
  evil.claims = { nonce: there.searchParams.get('nonce') };
  const back = new URL(`?code=x&state=${there.searchParams.get('state')}`, evil.issuer);
  const { code } = await own.finish(back, browser);
  const { access_token: token } = (await own.redeem(code!, verifier)).body!;
  evil.close();
  expect((await logout(own, token)).body).toEqual({});
  await isOut(own, token);
  await own.stop();
});

test('neither does one that is away', async () => {
  const own = await startScene({ issuer: 'http://127.0.0.1:1' });
  const who = { email: 'pat@example.com', password: 'a long password of theirs' };
  await own.auth.addUser(who.email, who.password);
  const { token } = (await call(own.auth.origin, contract.login, { body: who })).body!;
  // As if they had come from there before the service was started anew.
  const origin = `UPDATE auth.session SET identity_issuer = $1, id_token = 'a.b.c', suborgs = '{}'`;
  await own.auth.database.query('origin', origin, [own.issuer]);
  expect(await logout(own, token)).toMatchObject({ status: 200, body: {} });
  await isOut(own, token);
  await own.stop();
});
