import { beforeEach, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import jwt from 'jsonwebtoken';
import * as contract from '@content-platform/contract';
import { client } from '../../../test/support/identity.ts';
import { untilBlocked } from '../../../test/support/locks.ts';
import { codeOf, enrol, mfaTokenOf } from '../../../test/support/totp.ts';
import { createStores } from '../stores.ts';
import { otherKey, startEvilProvider } from '../testing/evil-provider.ts';
import {
  type IdentityFixture,
  startIdentityService,
  useScriptedProvider,
} from '../testing/identity-fixture.ts';
import { reasonOf } from '../testing/start-auth.ts';

const event = 'http://schemas.openid.net/event/backchannel-logout';
const send = ({ auth }: IdentityFixture, logout_token: string) =>
  auth.ask(contract.backchannelLogout, { params: { identity: 'identity' }, body: { logout_token } });

describe('with a scripted provider', () => {
  const { evil, scene } = useScriptedProvider();
  let refreshToken: string;

  /** Logs in with this session of the provider. Returns the refresh token. */
  async function logIn(sid: string | undefined): Promise<string> {
    const { code, verifier } = await scene.logInAt(evil, { sid });
    return (await scene.redeem(code!, verifier)).body!.refresh_token!;
  }
  beforeEach(async () => {
    refreshToken = await logIn('one');
  });

  const seconds = () => Math.floor(Date.now() / 1000);
  const valid = () => ({
    iss: evil.issuer,
    aud: client.id,
    iat: seconds(),
    exp: seconds() + 120,
    jti: randomUUID(),
    sub: 'someone',
    sid: 'one',
    events: { [event]: {} },
  });
  function tokenOf(changes: Record<string, unknown> = {}, header: object = {}, key = evil.key): string {
    const claims = Object.entries({ ...valid(), ...changes }).filter(([, value]) => value !== undefined);
    const options = {
      algorithm: 'RS256',
      header: { alg: 'RS256', kid: 'one', typ: 'logout+jwt', ...header },
    };
    return jwt.sign(Object.fromEntries(claims), key, options as jwt.SignOptions);
  }
  const stateOf = async (token: string) => reasonOf(await scene.auth.refresh(token));

  test('ends the session that the provider names, and no other', async () => {
    const other = await logIn('two');
    const answer = await send(scene, tokenOf({}, { alg: 'RS512' }));
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(await stateOf(refreshToken)).toBe('revoked');
    expect(await stateOf(other)).toBeUndefined();
  });

  test.each([
    ['without sid, all sessions of the user', { sid: undefined }],
    ['without sub, the session', { sub: undefined }],
  ])('ends, %s', async (_, changes) => {
    expect((await send(scene, tokenOf(changes))).status).toBe(200);
    expect(await stateOf(refreshToken)).toBe('revoked');
  });

  test('also ends a session whose provider named no sid', async () => {
    const unnamed = await logIn(undefined);
    expect([(await send(scene, tokenOf())).status, await stateOf(unnamed)]).toEqual([200, 'revoked']);
  });

  test('a session of another login with a password stays', async () => {
    const { id, refreshToken: own } = await scene.auth.person();
    await scene.auth.sql(`UPDATE auth.identity SET user_id = $1 WHERE subject = 'someone'`, id);
    expect((await send(scene, tokenOf({ sid: undefined }))).status).toBe(200);
    expect(await stateOf(own)).toBeUndefined();
  });

  /** Begins a login of a user of the provider whose session has the user's name. Returns a function that redeems its code. */
  async function beginAs(sub: string) {
    const before = evil.userinfo;
    evil.userinfo = { sub, email: `${sub}@example.com`, email_verified: true };
    const { code, verifier } = await scene.logInAt(evil, { sub, sid: sub });
    evil.userinfo = before;
    return () => scene.redeem(code!, verifier);
  }

  test.each(['someone', 'two'])('of two users does not deadlock with a logout of %s', async (subject) => {
    await logIn('two');
    await (
      await beginAs('two')
    )();
    const { database, sql } = scene.auth;
    const found = 'SELECT user_id::float8 AS id FROM auth.identity WHERE subject = $1';
    const [user] = await sql<{ id: number }>(found, subject);
    const answer = await database.transaction(async (query) => {
      await query('hold', 'SELECT FROM auth.session WHERE user_id = $1 FOR UPDATE', [user!.id]);
      const waiting = send(scene, tokenOf({ sub: undefined, sid: 'two' }));
      await untilBlocked(database);
      await createStores(query).sessions.endAll(user!.id);
      return { waiting };
    });
    expect((await answer.waiting).status).toBe(200);
  });

  describe.each([
    ['sub', { sub: 'eva', sid: undefined }],
    ['sid', { sub: undefined, sid: 'ida' }],
  ])('a logout token with %s only', (_, claims) => {
    const name = claims.sub ?? claims.sid!;

    test('ends a login in progress, and none of another session', async () => {
      const [redeem, redeemOther] = [await beginAs(name), await beginAs('other')];
      expect((await send(scene, tokenOf(claims))).status).toBe(200);
      expect(reasonOf(await redeem())).toBe('unknown');
      expect((await redeemOther()).status).toBe(200);
    });

    test('ends a login that waits for its code', async () => {
      const { ask, origin } = scene.auth;
      const { access_token: token } = (await (await beginAs(name))()).body!;
      const { secret } = await enrol(origin, token);
      await ask(contract.logout, { token });
      const mfa_token = mfaTokenOf(await (await beginAs(name))());
      expect((await send(scene, tokenOf(claims))).status).toBe(200);
      const body = { mfa_token, code: codeOf(secret) };
      expect((await ask(contract.loginMfa, { body })).error?.error).toBe('invalid_credentials');
    });
  });

  test('accepts each token once', async () => {
    const token = tokenOf();
    expect((await send(scene, token)).status).toBe(200);
    const later = await logIn('one');
    expect(await send(scene, token)).toMatchObject({ status: 400, error: { error: 'invalid_request' } });
    expect(await stateOf(later)).toBeUndefined();
  });

  test.each<[string, () => string]>([
    ['for another audience', () => tokenOf({ aud: 'other' })],
    ['of another issuer', () => tokenOf({ iss: 'https://other.example' })],
    ['with a nonce, such as an ID token', () => tokenOf({ nonce: 'x' })],
    ['without the event', () => tokenOf({ events: {} })],
    ['without events', () => tokenOf({ events: undefined })],
    ['without jti', () => tokenOf({ jti: undefined })],
    ['without exp', () => tokenOf({ exp: undefined })],
    ['with neither sub nor sid', () => tokenOf({ sub: undefined, sid: undefined })],
    ['that has expired', () => tokenOf({ iat: seconds() - 200, exp: seconds() - 100 })],
    ['that is ten minutes old', () => tokenOf({ iat: seconds() - 600, exp: seconds() + 600 })],
    ['of the future', () => tokenOf({ iat: seconds() + 600, exp: seconds() + 900 })],
    ['with another key', () => tokenOf({}, {}, otherKey)],
    ['with an unknown kid', () => tokenOf({}, { kid: 'two' })],
    ['of another type', () => tokenOf({}, { typ: 'at+jwt' })],
    ['that is not one', () => 'a.b.c'],
    ['without a signature', () => `${tokenOf().split('.').slice(0, 2).join('.')}.`],
  ])('refuses a token %s, and changes nothing', async (_, make) => {
    expect(await send(scene, make())).toMatchObject({ status: 400, error: { error: 'invalid_request' } });
    expect(await stateOf(refreshToken)).toBeUndefined();
  });

  test('is a 502 while the keys cannot be read, and the token is accepted later', async () => {
    const own = await startEvilProvider();
    const second = await startIdentityService({ issuer: own.issuer });
    const token = tokenOf({ iss: own.issuer });
    own.answers['/jwks'] = (response) => response.writeHead(500).end();
    expect(await send(second, token)).toMatchObject({
      status: 502,
      error: { error: 'identity_unavailable' },
    });
    own.answers = {};
    expect((await send(second, token)).status).toBe(200);
    await second.stop();
    own.close();
  });
});
