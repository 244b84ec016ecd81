import { expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { client, createBrowser } from '../../../test/support/identity.ts';
import { until } from '../../../test/support/wait.ts';
import { type EvilProvider, startEvilProvider } from '../testing/evil-provider.ts';
import {
  person,
  type IdentityFixture,
  startIdentityService,
  useIdentityService,
} from '../testing/identity-fixture.ts';
import { decode, reasonOf } from '../testing/start-auth.ts';

const people = [person('ann', { suborgs: ['north', 'south'] })];
const scene = useIdentityService({ people });
const params = { identity: 'identity' };

const logout = ({ auth }: IdentityFixture, token: string) =>
  auth.ask(contract.identityLogout, { params, token });

const isOut = ({ auth }: IdentityFixture, token: string) =>
  until('the token is refused', () => auth.isRefused(token));

test("ends our session and returns the URL that ends the provider's session", async () => {
  const { access_token: token, refresh_token } = await scene.tokensOf('ann');
  const there = new URL((await logout(scene, token)).body!.logout_url!);
  expect(there.origin + there.pathname).toBe(`${scene.issuer}/session/end`);
  expect(there.searchParams.get('client_id')).toBe(client.id);
  expect(decode(there.searchParams.get('id_token_hint')!).claims).toMatchObject({ sub: 'ann' });
  expect((await createBrowser().go(there)).status).toBe(200);
  await isOut(scene, token);
  expect(reasonOf(await scene.auth.refresh(refresh_token!))).toBe('revoked');
  const idTokens = 'SELECT id_token FROM auth.session UNION SELECT id_token FROM auth.identity_code';
  expect(await scene.auth.sql(idTokens)).toEqual([{ id_token: '' }]);
  expect((await scene.events())[0]).toMatchObject({ event: 'logout' });
});

test('ends a session with a password and returns no URL', async () => {
  const { token } = await scene.auth.person();
  expect((await logout(scene, token)).body).toEqual({});
  await isOut(scene, token);
});

test('does not send an ID token of another provider to this one', async () => {
  const { access_token: token } = await scene.tokensOf('ann');
  await scene.auth.sql(
    `UPDATE auth.session SET identity_issuer = 'https://old.example' WHERE identity_issuer IS NOT NULL`,
  );
  expect((await logout(scene, token)).body).toEqual({});
});

test.each<[string, (evil: EvilProvider) => string]>([
  ['without a logout endpoint', ({ issuer }) => issuer],
  ['that is unavailable', () => 'http://127.0.0.1:1'],
])('ends our session with an identity provider %s', async (_, issuerOf) => {
  const evil = await startEvilProvider();
  const own = await startIdentityService({ issuer: issuerOf(evil) });
  const { token } = await own.auth.person();
  // Simulates sessions that this provider opened before the service was restarted.
  const origin = `UPDATE auth.session SET identity_issuer = $1, id_token = 'a.b.c', suborgs = '{}'`;
  await own.auth.sql(origin, own.issuer);
  expect((await logout(own, token)).body).toEqual({});
  await isOut(own, token);
  await own.stop();
  evil.close();
});

const choose = (token: string, suborg: string) =>
  scene.auth.ask(contract.updateSuborg, { params, token, body: { suborg } });

test('offers no suborgs to a session with a password', async () => {
  const { token } = await scene.auth.person();
  expect((await choose(token, 'north')).error?.error).toBe('suborg_not_allowed');
});

test('removes a withdrawn suborg at the next login, in older sessions too', async () => {
  const { access_token: older } = await scene.tokensOf('ann');
  expect((await choose(older, 'south')).body?.user).toMatchObject({ suborg: 'south' });
  people[0] = person('ann', { suborgs: ['north'] });
  const { access_token: token } = await scene.tokensOf('ann');
  expect([decode(token).claims['suborg'], (await scene.me(token))!.suborg]).toEqual([undefined, undefined]);
  for (const session of [token, older])
    expect((await choose(session, 'south')).error?.error).toBe('suborg_not_allowed');
  expect((await choose(older, 'north')).status).toBe(200);
  expect((await scene.events())[0]).toMatchObject({ event: 'suborg_changed', details: { suborg: 'north' } });
});
