import { beforeAll, describe, expect, test } from '@jest/globals';
import { createBrowser } from '../../../test/support/identity.ts';
import { person, useIdentityService, useScriptedProvider } from '../testing/identity-fixture.ts';
import { untilBlocked } from '../../../test/support/locks.ts';
import { decode, reasonOf } from '../testing/start-auth.ts';

const people = [
  person('ann'),
  person('ben'),
  person('eve', { email: 'taken@example.com' }),
  person('ute', { email: 'taken@example.com', emailVerified: false }),
  person('two', { email: 'ANN@example.com' }),
  person('dan'),
  person('lea'),
  person('una', { emailVerified: false }),
  person('odd', { email: 'no address' }),
];

describe('with a real identity provider', () => {
  const scene = useIdentityService({ people });
  beforeAll(async () => void (await scene.auth.addUser('taken@example.com', 'a long password of theirs')));

  test('creates a user for a new person, and finds that user at the next login', async () => {
    const { location, code, verifier } = await scene.logIn('ann');
    expect(location).toMatch(/^https:\/\/app\.test\/signed-in\?state=of\+the\+client&code=[\w-]{43}$/);
    const { body } = await scene.redeem(code!, verifier);
    expect(body).toMatchObject({ token_type: 'Bearer', expires_in: 900, scope: '' });
    const user = await scene.me(body!.access_token);
    expect(user).toMatchObject({ email: 'ann@example.com', name: 'The ann', roles: ['user'] });
    const again = await scene.tokensOf('ann');
    expect(await scene.me(again.access_token)).toEqual(user);
    const events = (await scene.events()).filter((one) => Number(one.user_id) === user!.id);
    expect(events.map(({ event }) => event)).toEqual(['login', 'login', 'user_created']);
    expect(events[0]!.details).toMatchObject({ identity: scene.issuer });
  });

  test('concurrent logins of a new person create one user', async () => {
    const tokens = await Promise.all([1, 2, 3].map(() => scene.tokensOf('ben')));
    const ids = tokens.map(({ access_token }) => decode(access_token).claims['sub']);
    expect(new Set(ids).size).toBe(1);
  });

  test('does not link a person to the user with the same email unless configured', async () => {
    for (const subject of ['eve', 'two']) {
      const { error, code } = await scene.logIn(subject);
      expect([error, code]).toEqual(['identity_email_taken', undefined]);
    }
    const addresses = `SELECT lower(email) AS email, (SELECT count(*)::int FROM auth.identity WHERE user_id = "user".id) AS links
                       FROM auth.user WHERE lower(email) IN ('taken@example.com', 'ann@example.com') ORDER BY email`;
    expect(await scene.auth.sql(addresses)).toEqual([
      { email: 'ann@example.com', links: 1 },
      { email: 'taken@example.com', links: 0 },
    ]);
    const taken = { event: 'login_failed', details: { reason: 'identity_email_taken' } };
    expect((await scene.events())[0]).toMatchObject(taken);
  });

  test('creates no user for an unverified email, so that the owner of the address shares no account', async () => {
    const refused = { error: 'identity_email_unverified', code: undefined };
    for (const subject of ['una', 'ute']) expect(await scene.logIn(subject)).toMatchObject(refused);
    expect(await scene.auth.sql(`SELECT FROM auth.user WHERE email = 'una@example.com'`)).toEqual([]);
  });

  test('reports a missing or unusable email', async () => {
    expect((await scene.logIn('odd')).error).toBe('identity_email_missing');
  });

  test('refuses a disabled user at the callback and between callback and tokens', async () => {
    const before = await scene.logIn('dan');
    await scene.auth.sql(`UPDATE auth.user SET disabled = true WHERE email LIKE 'dan@%'`);
    expect(reasonOf(await scene.redeem(before.code!, before.verifier))).toBe('revoked');
    expect((await scene.logIn('dan')).error).toBe('identity_user_disabled');
  });

  test('refuses a user who is disabled during the callback', async () => {
    await scene.tokensOf('lea');
    const disable = `UPDATE auth.user SET disabled = $1 WHERE email LIKE 'lea@%'`;
    const { error } = await scene.auth.whileHeld(
      (query) => query('disable', disable, [true]),
      () => scene.logIn('lea'),
    );
    expect(error).toBe('identity_user_disabled');
    await scene.auth.sql(disable, false);
  });

  test('creates a new user if the user is deleted during the callback', async () => {
    const before = await scene.me((await scene.tokensOf('lea')).access_token);
    const text = `DELETE FROM auth.user WHERE email LIKE 'lea@%'`;
    const { code, verifier } = await scene.auth.whileHeld(
      (query) => query('delete', text),
      () => scene.logIn('lea'),
    );
    const { body } = await scene.redeem(code!, verifier);
    const after = await scene.me(body!.access_token);
    expect(after).toMatchObject({ email: before!.email, roles: ['user'] });
    expect(after!.id).not.toBe(before!.id);
  });

  test('returns no tokens to a user who is deleted after the callback', async () => {
    const { code, verifier } = await scene.logIn('lea');
    await scene.auth.sql(`DELETE FROM auth.user WHERE email LIKE 'lea@%'`);
    expect(reasonOf(await scene.redeem(code!, verifier))).toBe('unknown');
  });

  test('refuses a user whose identity is unlinked during the callback', async () => {
    await scene.tokensOf('ben');
    const { error } = await scene.auth.whileHeld(
      async (query) => {
        await query('lock', `SELECT FROM auth.user WHERE email = 'ben@example.com' FOR UPDATE`);
        await query('unlink', `DELETE FROM auth.identity WHERE subject = 'ben'`);
      },
      () => scene.logIn('ben'),
    );
    expect(error).toBe('identity_email_taken');
  });

  test('refuses a callback in another browser, and later in the first one', async () => {
    const { browser, there } = await scene.begin();
    const back = await browser.logInThere(there, 'ann');
    const stranger = createBrowser();
    expect((await scene.finish(back, stranger)).envelope).toBe('identity_other_browser');
    expect((await scene.finish(back, browser)).envelope).toBe('identity_login_unknown');
    const second = await scene.begin(browser);
    const { browser: victim } = await scene.begin();
    const attack = await scene.finish(await browser.logInThere(second.there, 'ann'), victim);
    expect(attack.envelope).toBe('identity_other_browser');
  });

  test('refuses a code of the identity provider for another login', async () => {
    const [mine, theirs] = [await scene.begin(), await scene.begin()];
    const back = await mine.browser.logInThere(mine.there, 'ann');
    const stolen = await theirs.browser.logInThere(theirs.there, 'ben');
    back.searchParams.set('code', stolen.searchParams.get('code')!);
    expect((await scene.finish(back, mine.browser)).error).toBe('identity_code_refused');
  });

  test('refuses the code if the challenge was removed from the request (RFC 9700 §4.8.2)', async () => {
    const { browser, there } = await scene.begin();
    there.searchParams.delete('code_challenge');
    there.searchParams.delete('code_challenge_method');
    const back = await browser.logInThere(there, 'ann');
    expect(back.searchParams.get('code')).not.toBeNull();
    expect((await scene.finish(back, browser)).error).toBe('identity_code_refused');
  });

  test('logs no tokens and codes of the provider, and audits nothing that a stranger caused', async () => {
    const { browser, there } = await scene.begin();
    const back = await browser.logInThere(there, 'ann');
    back.searchParams.set('iss', 'https://evil.test');
    expect((await scene.finish(back, browser)).error).toBe('identity_issuer_mismatch');
    expect(JSON.stringify(await scene.events())).not.toContain('identity_issuer_mismatch');
    const log = scene.auth.log.join('');
    expect(log).toContain('a login at the identity provider failed');
    for (const name of ['code', 'state']) expect(log).not.toContain(back.searchParams.get(name)!);
    expect(log).not.toContain(browser.cookies.get('__Host-identity-login'));
    expect(log).not.toMatch(/eyJ[\w-]+\./);
  });
});

describe('when users are linked by email', () => {
  const scene = useIdentityService({ people, linkByEmail: true });
  beforeAll(async () => {
    await scene.auth.addUser('taken@example.com', 'a long password of theirs', 'sre');
  });

  test('links a verified email once; a second person with that email is not linked', async () => {
    const { access_token: token } = await scene.tokensOf('eve');
    expect(await scene.me(token)).toMatchObject({ email: 'taken@example.com', roles: ['sre'] });
    const events = (await scene.events()).map(({ event }) => event);
    expect(events.slice(0, 2)).toEqual(['login', 'identity_linked']);
    await scene.tokensOf('ann');
    expect((await scene.logIn('two')).error).toBe('identity_email_taken');
  });

  test('does not link a user who is deleted meanwhile', async () => {
    const { database, addUser } = scene.auth;
    const email = 'ben@example.com';
    await addUser(email, 'a long password of theirs', 'sre');
    const { back } = await database.transaction(async (query) => {
      await query('lock', 'SELECT FROM auth.user WHERE email = $1 FOR UPDATE', [email]);
      const login = scene.logIn('ben');
      await untilBlocked(database);
      await query('delete', 'DELETE FROM auth.user WHERE email = $1', [email]);
      return { back: login };
    });
    expect((await back).error).toBe('identity_email_taken');
    const { access_token: token } = await scene.tokensOf('ben');
    expect(await scene.me(token)).toMatchObject({ email, roles: ['user'] });
  });
});

describe('with an identity provider that violates the protocol', () => {
  const { evil, scene } = useScriptedProvider({ linkByEmail: true });
  beforeAll(async () => void (await scene.auth.addUser('pat@example.com', 'a long password of theirs')));

  test.each(['x'.repeat(256), 'a\0b'])(
    'refuses a subject that is too long or has a NUL, and notifies the client (%#)',
    async (sub) => {
      evil.userinfo['sub'] = sub;
      const refusal = { status: 302, error: 'identity_token_invalid', code: undefined };
      expect(await scene.logInAt(evil, { sub })).toMatchObject(refusal);
    },
  );

  test('does not accept the text "true" as a verified email', async () => {
    const pat = { sub: 'pat', email: 'pat@example.com' };
    evil.userinfo = { ...pat, email_verified: 'true' };
    expect((await scene.logInAt(evil, { sub: 'pat' })).error).toBe('identity_email_unverified');
    evil.userinfo = { ...pat, email_verified: true };
    expect((await scene.logInAt(evil)).code).toBeDefined();
  });
});
